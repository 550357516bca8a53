// How fast the board is with 10,000 cases: first paint, filter, and from an
// event to the screen, each the median of several.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { make } from './project';

const median = (list: number[]) => Math.round([...list].sort((a, b) => a - b)[Math.floor(list.length / 2)]!);
const p = await make(process.env.PAWL ?? 'pawl');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  writeFileSync(join(p.dir, 'many.md'), Array.from({ length: 10_000 }, (_, i) => `- [ ] Case number ${i + 1} of many\n  tags: t${i % 50}\n`).join(''));
  p.run('case', 'add', '-f', 'many.md');
  const page = await browser.newPage();
  await page.goto(p.url);
  const board = new URL('/board', p.url).href;
  const paints: number[] = [];
  for (let i = 0; i < 5; i++) {
    await page.goto(board);
    await page.getByRole('option', { name: /Case number/ }).first().waitFor();
    paints.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()));
  }
  await page.getByText('10,000 tasks', { exact: true }).waitFor();
  const filters: number[] = [];
  for (const text of ['number 77', '#t7', '9999', 'many', 'case 12']) {
    filters.push(
      await page.evaluate(async (text) => {
        const input = document.querySelector<HTMLInputElement>('input[type=search]')!;
        const began = performance.now();
        input.value = text;
        input.dispatchEvent(new Event('input', { bubbles: true }));
        await new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
        return performance.now() - began;
      }, text),
    );
  }
  await page.getByLabel('Filter the board').fill('arrives');
  const events: number[] = [];
  for (let i = 0; i < 5; i++) {
    events.push(
      await page.evaluate(async (n) => {
        await fetch('/api/v1/cases', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ title: `This one arrives ${n}` }) });
        const began = performance.now();
        while (!document.body.textContent!.includes(`arrives ${n}`)) await new Promise((r) => setTimeout(r, 2));
        return performance.now() - began;
      }, i),
    );
  }
  console.log(`10,000 cases: first paint ${median(paints)} ms, filter ${median(filters)} ms, event on screen ${median(events)} ms`);
} finally {
  await browser.close();
  await p.close();
}
