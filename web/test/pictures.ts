// Pictures of every page to look at, of a project with a history and of one
// that has just begun:
//
//	node pictures.mjs FOLDER [PAGE,…]
//
// PAWL names the program; WIDTHS and SCHEMES say which ones, e.g. 400,1280 and dark.

import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { fill, make, type Project } from './project';

const out = resolve(process.argv[2] ?? 'pictures');
const only = (process.argv[3] ?? '').split(',').filter(Boolean);
const widths = (process.env.WIDTHS ?? '400,1280,1920,3840').split(',').map(Number);
const schemes = (process.env.SCHEMES ?? 'light,dark').split(',') as ('light' | 'dark')[];
const heights: Record<number, number> = { 400: 860, 1280: 800, 1920: 1080, 3840: 2160 };

/** Shot is a page, and what is done on it before it is taken. */
type Shot = [name: string, path: string, then?: (page: Page) => Promise<void>];

const places: Shot[] = [
  ['now', '/'],
  ['board', '/board'],
  ['runs', '/runs'],
  ['queue', '/queue'],
  ['review', '/review'],
  ['sprint', '/sprint'],
  ['stats', '/stats'],
  ['config', '/config'],
];

async function take(browser: Browser, p: Project, shots: Shot[], mark: string): Promise<void> {
  for (const scheme of schemes) {
    for (const width of widths) {
      const context = await browser.newContext({ viewport: { width, height: heights[width] ?? 1000 }, colorScheme: scheme, reducedMotion: 'reduce' });
      const page = await context.newPage();
      page.on('console', (m) => (m.type() === 'error' || m.type() === 'warning') && console.log(`${scheme} ${width}: ${m.text()}`));
      page.on('pageerror', (e) => console.log(`${scheme} ${width}: ${e.message}`));
      await page.goto(p.url);
      for (const [name, path, then] of shots) {
        if (only.length > 0 && !only.includes(name)) continue;
        await page.goto(new URL(path, p.url).href);
        await page.getByText('Live', { exact: true }).waitFor({ state: 'attached' });
        await page.waitForFunction(() => !/(Loading|Asking|Adding up|Connecting)[^.]*…/.test(document.body.innerText));
        await then?.(page);
        await page.waitForTimeout(150);
        await page.screenshot({ path: join(out, `${mark}${name}-${width}-${scheme}.png`) });
      }
      await context.close();
    }
  }
}

mkdirSync(out, { recursive: true });
const pawl = process.env.PAWL ?? 'pawl';
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage'] });
try {
  const empty = await make(pawl);
  try {
    await take(browser, empty, places, 'empty-');
  } finally {
    await empty.close();
  }
  const p = await make(pawl);
  try {
    fill(p);
    p.run('sprint', '--count', '2', '-q');
    p.run('sprint', '--count', '3', '--batch-review', '-q');
    p.begin('run', 'slow-import', '-q');
    await new Promise((r) => setTimeout(r, 4000));
    const runs = JSON.parse('[' + p.run('ps', '-a', '--json').trim().split('\n').join(',') + ']') as { run: string; name: string }[];
    const id = (name: string) => runs.find((r) => r.name === name)!.run;
    const more: Shot[] = [
      ['groups', '/board?view=groups'],
      ['case', '/board/task-001'],
      ['run', `/runs/${id('currency-format')}?i=1.1`],
      ['changes', `/runs/${id('currency-format')}?show=changes`],
      ['live', `/runs/${id('slow-import')}`],
      ['question', `/runs/${id('which-database')}`],
      ['keys', '/board', (page) => page.keyboard.press('?')],
    ];
    await take(browser, p, [...places, ...more], '');
  } finally {
    await p.close();
  }
} finally {
  await browser.close();
}
