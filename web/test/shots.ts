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
    for (const width of (process.env.WIDTHS ?? '400,1280,1920,3840').split(',').map(Number)) {
      if (process.env.SCHEME && process.env.SCHEME !== scheme) continue;
      const context = await browser.newContext({ viewport: { width, height: { 400: 860, 1280: 800, 1920: 1080 }[width] ?? 2160 }, colorScheme: scheme });
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
