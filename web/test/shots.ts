// Pictures of every page, to look at: node, after a build of tests.
import { chromium, type Page } from 'playwright-core';
import { mkdirSync } from 'node:fs';
import { fill, make } from './project';

const out = process.argv[2] ?? '/tmp/shots';
const only = (process.argv[3] ?? '').split(',').filter(Boolean);
mkdirSync(out, { recursive: true });
const p = await make(process.env.PAWL ?? 'pawl');
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  fill(p);
  console.log(p.run('sprint', '--count', '2', '-q'), p.run('sprint', '--count', '3', '--batch-review', '-q'));
  p.begin('run', 'slow-import', '-q');
  await new Promise((r) => setTimeout(r, 4000));
  const runs = JSON.parse('[' + p.run('ps', '-a', '--json').trim().split('\n').join(',') + ']') as { run: string; name: string }[];
  if (process.env.SHOW) console.log(p.run('run', 'currency-format'), p.run('ps', '-a'), p.run('case','list','--all'));
  const id = (name: string) => runs.find((r) => r.name === name)!.run;
  const pages: [string, string, ((page: Page) => Promise<void>)?][] = [
    ['now', '/'],
    ['board', '/board'],
    ['groups', '/board?view=groups'],
    ['case', '/board/task-001'],
    ['runs', '/runs'],
    ['run', `/runs/${id('currency-format')}?i=1.1`],
    ['changes', `/runs/${id('currency-format')}?show=changes`],
    ['live', `/runs/${id('slow-import')}`],
    ['question', `/runs/${id('which-database')}`],
    ['queue', '/queue'],
    ['review', '/review'],
    ['sprint', '/sprint'],
    ['stats', '/stats'],
    ['config', '/config'],
    ['keys', '/board', async (page) => page.keyboard.press('?')],
  ];
  for (const scheme of ['light', 'dark'] as const) {
    for (const width of [400, 1280, 1920]) {
      if (process.env.FEW && (scheme === 'dark' ? width !== 1280 : false)) continue;
      const context = await browser.newContext({ viewport: { width, height: width === 400 ? 860 : width === 1280 ? 800 : 1080 }, colorScheme: scheme });
      const page = await context.newPage();
      page.on('console', (m) => (m.type() === 'error' || m.type() === 'warning') && console.log(scheme, width, m.text()));
      page.on('pageerror', (e) => console.log('ERROR', e.message, e.stack));
      await page.goto(p.url);
      for (const [name, path, then] of pages) {
        if (only.length && !only.includes(name)) continue;
        await page.goto(new URL(path, p.url).href);
        await page.waitForTimeout(500);
        if (then) await then(page);
        await page.waitForTimeout(200);
        await page.screenshot({ path: `${out}/${name}-${width}-${scheme}.png` });
      }
      await context.close();
    }
  }
} finally {
  await browser.close();
  await p.close();
}
