// Pictures of every page to look at, of a project with a history, of one that
// has just begun, and of one with 70 tasks and as many runs:
//
//	node pictures.mjs FOLDER [PAGE,…]
//
// PAWL names the program; WIDTHS and SCHEMES say which ones, e.g. 400,1280 and dark; PROJECTS which of empty,
// story and crowd; 720 px is a window of 1440 at 200 %.

import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { crowd } from './crowd';
import { api, fill, make, type Project } from './project';

const out = resolve(process.argv[2] ?? 'pictures');
const only = (process.argv[3] ?? '').split(',').filter(Boolean);
const projects = (process.env.PROJECTS ?? 'empty,story,crowd').split(',');
const widths = (process.env.WIDTHS ?? '390,720,1440,2560').split(',').map(Number);
const schemes = (process.env.SCHEMES ?? 'light,dark').split(',') as ('light' | 'dark')[];
const heights: Record<number, number> = { 390: 844, 720: 450, 1440: 900, 2560: 1440 };

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
  ['plan', '/plan'],
];

async function take(browser: Browser, p: Project, shots: Shot[], mark: string): Promise<void> {
  for (const scheme of schemes) {
    for (const width of widths) {
      const context = await browser.newContext({
        viewport: { width, height: heights[width] ?? 1000 },
        colorScheme: scheme,
        reducedMotion: 'reduce',
      });
      const page = await context.newPage();
      page.on(
        'console',
        (m) => (m.type() === 'error' || m.type() === 'warning') && console.log(`${scheme} ${width}: ${m.text()}`),
      );
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
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
});
/** first gives the newest run that fits. */
type Row = { run: string; name: string; work: string; status: string };
const found = async (page: Page, fits: (r: Row) => boolean) =>
  ((await api(page, '/api/v1/runs?limit=200')) as { runs: Row[] }).runs.find(fits)?.run ?? '';
/** at opens a run that fits. */
const at =
  (p: Project, fits: (r: Row) => boolean, rest = '') =>
  async (page: Page) => {
    await page.goto(new URL(`/runs/${await found(page, fits)}${rest}`, p.url).href);
    await page.locator('main h1').waitFor();
    await page.waitForTimeout(700);
  };
const click =
  (name: RegExp, role: 'button' | 'option' = 'button') =>
  async (page: Page) => {
    await page.getByRole(role, { name }).first().click();
    await page.waitForTimeout(700);
  };

try {
  if (projects.includes('empty')) {
    const empty = await make(pawl);
    try {
      await take(browser, empty, places, 'empty-');
    } finally {
      await empty.close();
    }
  }
  if (projects.includes('story')) {
    const p = await make(pawl);
    try {
      fill(p);
      p.run('sprint', '--count', '2', '-q');
      p.run('sprint', '--count', '3', '--batch-review', '-q');
      p.begin('run', 'slow-import', '-q');
      await new Promise((r) => setTimeout(r, 4000));
      const named = (name: string) => (r: Row) => r.name === name;
      const more: Shot[] = [
        ['groups', '/board?view=groups'],
        ['case', '/board/task-001'],
        ['run', '/runs', at(p, named('currency-format'), '?i=1.1')],
        ['changes', '/runs', at(p, named('currency-format'), '?show=changes')],
        ['live', '/runs', at(p, named('slow-import'))],
        ['question', '/runs', at(p, named('which-database'))],
        ['keys', '/board', (page) => page.keyboard.press('?')],
      ];
      await take(browser, p, [...places, ...more], '');
    } finally {
      await p.close();
    }
  }
  if (projects.includes('crowd')) {
    const p = await crowd(pawl);
    try {
      const titled = (words: RegExp) => (r: Row) => words.test(r.work || r.name);
      const more: Shot[] = [
        ['groups', '/board?view=groups'],
        ['needs', '/board?view=needs'],
        ['failed', '/board?status=timeout', click(/scene-red/, 'option')],
        ['criteria', '/board?q=hundred', click(/hundred/, 'option')],
        ['long', '/board?q=pasted', click(/pasted/, 'option')],
        ['add', '/board', (page) => page.keyboard.press('n')],
        ['find', '/board', (page) => page.keyboard.press('Control+k')],
        ['wall', '/wall', (page) => page.waitForTimeout(1500)],
        ['run', '/runs', at(p, titled(/scene-red/))],
        ['output', '/runs', async (page) => (await at(p, titled(/scene-red/))(page), await click(/^Unit tests/)(page))],
        ['live', '/runs', at(p, titled(/batches/))],
        ['changes', '/runs', at(p, titled(/Sort mails/), '?show=changes')],
        ['flow', '/runs', at(p, titled(/release/))],
        ['reviewing', '/review', (page) => page.waitForTimeout(1200)],
        [
          'compare',
          '/runs',
          async (page) => {
            const run = await found(page, titled(/scene-red/));
            await page.goto(new URL(`/compare?a=${run}.1&b=${run}.2`, p.url).href);
            await page.waitForTimeout(1200);
          },
        ],
        ['conflict', '/queue', click(/Settle the conflict|needs you/, 'option')],
      ];
      await take(browser, p, [...places, ...more], 'crowd-');
    } finally {
      await p.close();
    }
  }
} finally {
  await browser.close();
}
