// The figures of the pages, measured in Chromium on a real server with 10,000
// cases and 200 runs:
//
//	thin    the board over a line of 50 kB a second: the first card, and all of them
//	board   first useful paint, filter, from an event to the screen, a server with 20 viewers
//	log     an agent's log of 100 MB, scrolled to anywhere
//	diff    a diff of 10,000 lines
//	tab     the memory of a page that follows an agent of 100 events a second
//
// Without a name all of them. The tab takes TAB_MINUTES, 6 if not said, and is
// watched from outside: a browser that is driven keeps more than one that is not.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { api, make, type Project } from './project';

const wanted = process.argv.slice(2);
const wants = (name: string) => wanted.length === 0 || wanted.includes(name);
const path = process.env.CHROMIUM ?? '/usr/bin/chromium';
const sorted = (list: number[]) => [...list].sort((a, b) => a - b);
const median = (list: number[]) => Math.round(sorted(list)[Math.floor(list.length / 2)]!);
const said = (list: number[]) => `${median(list)} ms, at most ${Math.round(Math.max(...list))}`;
const rest = (ms: number) => new Promise((r) => setTimeout(r, ms));

/** memory is a process's own memory and all of it, in MB. */
function memory(pid: number | string): { own: number; all: number } {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kb = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1] ?? 0);
  return { own: (kb('RssAnon') + kb('VmSwap')) / 1024, all: kb('VmRSS') / 1024 };
}

/** agent makes an agent of a script for node, and a procedure that it works on. */
function agent(p: Project, name: string, script: string): void {
  writeFileSync(join(p.dir, `${name}.mjs`), script);
  const file = join(p.dir, 'pawl.yaml');
  const text = readFileSync(file, 'utf8')
    .replace('agents:\n', `agents:\n  ${name}: {command: [node, ${name}.mjs], output: script}\n`)
    .replace('procedures:\n', `procedures:\n  ${name}: {agent: ${name}, act: [{content: Go.}]}\n`);
  writeFileSync(file, text);
}

async function named(page: Page, name: string): Promise<string> {
  for (;;) {
    const { runs } = (await api(page, '/api/v1/runs?limit=10')) as { runs: { name: string; run: string }[] };
    const found = runs.find((r) => r.name === name);
    if (found) return found.run;
    await rest(100);
  }
}

async function board(p: Project, page: Page): Promise<void> {
  const at = new URL('/board', p.url).href;
  await page.addInitScript(() => {
    new MutationObserver((_, o) => {
      if (!document.querySelector('[role=option]')) return;
      o.disconnect();
      requestAnimationFrame(() =>
        setTimeout(() => ((window as unknown as { useful: number }).useful = performance.now())),
      );
    }).observe(document, { childList: true, subtree: true });
  });
  const paints: number[] = [];
  for (let i = 0; i < 7; i++) {
    await page.goto(at);
    await page.waitForFunction(() => (window as unknown as { useful?: number }).useful);
    paints.push(await page.evaluate(() => (window as unknown as { useful: number }).useful));
  }
  await page.getByText('10,000 tasks', { exact: true }).waitFor();
  const filters: number[] = [];
  for (const text of ['number 77', '#t7', '9999', 'many', 'case 12', 'x', '', 'number', '-#t3', '1', '12', '123']) {
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
  // What another process does: from its commit, as the event says, to the screen.
  await page.getByLabel('Filter the board by').fill('arrives');
  const events: number[] = [];
  for (let i = 0; i < 9; i++) {
    // The page watches before the case is added: adding it holds this program up.
    await page.evaluate((text) => {
      (window as unknown as { shown: Promise<number> }).shown = new Promise((resolve) => {
        const look = () =>
          document.body.textContent!.includes(text) &&
          (o.disconnect(), requestAnimationFrame(() => resolve(Date.now())));
        const o = new MutationObserver(look);
        o.observe(document.body, { childList: true, subtree: true, characterData: true });
      });
    }, `arrives ${i}.`);
    const id = /(task-\d+)/.exec(p.run('case', 'add', `This one arrives ${i}.`))![1]!;
    const when = await page.evaluate(() => (window as unknown as { shown: Promise<number> }).shown);
    const c = (await api(page, `/api/v1/cases/${id}`)) as { created_at: string };
    events.push(when - Date.parse(c.created_at));
  }
  console.log(`board: first useful paint ${said(paints)}; filter ${said(filters)}; event on screen ${said(events)}`);
}

/** thin opens the board in a browser that has nothing of it yet. */
async function thin(p: Project, browser: Browser): Promise<void> {
  const page = await browser.newPage();
  await page.goto(p.url);
  page.setDefaultTimeout(200_000);
  const line = await page.context().newCDPSession(page);
  await line.send('Network.enable');
  await line.send('Network.setCacheDisabled', { cacheDisabled: true });
  await line.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: 40,
    downloadThroughput: 50_000,
    uploadThroughput: 50_000,
  });
  let bytes = 0;
  line.on('Network.loadingFinished', (e) => (bytes += e.encodedDataLength));
  const began = Date.now();
  await page.goto(new URL('/board', p.url).href, { waitUntil: 'commit' });
  await page.locator('[role=option]').first().waitFor();
  const first = Date.now() - began;
  await page.getByText('10,000 tasks', { exact: true }).waitFor();
  console.log(
    `thin: at 50 kB a second the first card after ${first} ms, all 10,000 after ${Date.now() - began} ms, ${Math.round(bytes / 1000)} kB`,
  );
  await page.close();
}

/** viewers are 20 that read the events, and ask as a page does. */
async function viewers(p: Project): Promise<void> {
  const token = new URL(p.url).searchParams.get('token')!;
  const headers = { Authorization: `Bearer ${token}` };
  const before = memory(p.pid());
  const ask = (path: string) =>
    new Promise<void>((resolve, reject) =>
      get(new URL(path, p.url), { headers }, (r) => r.on('data', () => undefined).on('end', resolve)).on(
        'error',
        reject,
      ),
    );
  const open = Array.from({ length: 20 }, () =>
    get(new URL('/api/v1/events', p.url), { headers }, (r) => r.on('data', () => undefined)).on(
      'error',
      () => undefined,
    ),
  );
  let most = before;
  for (let round = 0; round < 5; round++) {
    await Promise.all(
      open.map(() =>
        Promise.all(
          ['/api/v1/overview', '/api/v1/inbox', '/api/v1/runs?limit=200', '/api/v1/cases?limit=1000'].map(ask),
        ),
      ),
    );
    const now = memory(p.pid());
    if (now.own > most.own) most = now;
  }
  await rest(5000);
  const after = memory(p.pid());
  for (const one of open) one.destroy();
  const mb = (m: { own: number; all: number }) =>
    `${Math.round(m.own)} MB of its own, ${Math.round(m.all)} with what is shared`;
  console.log(
    `server: ${mb(before)} before; with 20 viewers that load everything at once at most ${mb(most)}; ${mb(after)} then`,
  );
}

async function log(p: Project, page: Page): Promise<void> {
  agent(
    p,
    'flood',
    `
    const line = (i) => JSON.stringify({ type: 'text', text: 'Line ' + i + ' of a long log, as agents write them when they think aloud.' }) + '\\n';
    let i = 0, bytes = 0;
    const go = () => { while (bytes < 100e6) { let s = ''; for (let n = 0; n < 500; n++) s += line(++i); bytes += s.length; if (!process.stdout.write(s)) return process.stdout.once('drain', go); } setInterval(() => 0, 1000); };
    go();`,
  );
  p.begin('run', 'flood', '-q');
  const run = await named(page, 'flood');
  const size = async () =>
    ((await api(page, `/api/v1/runs/${run}/iterations/1/files/agent.out?limit=1`)) as { size?: number }).size ?? 0;
  while ((await size()) < 100e6) await rest(300);
  for (const [show, box] of [
    ['log', '[role=region][aria-label="agent.out"]'],
    ['output', '[role=log]'],
  ] as const) {
    await page.goto(new URL(`/runs/${run}?show=${show}`, p.url).href);
    await page.waitForFunction((box) => document.querySelector(box)?.textContent?.includes('of a long log'), box);
    const times: number[] = [];
    for (const to of [0, 0.5, 0.1, 0.9, 0.3, 0.99, 0.2, 0.7, 1, 0.4, 0.6, 0]) {
      times.push(
        await page.evaluate(
          ([box, to]) => {
            const frame = document.querySelector(box as string)!;
            const began = performance.now();
            frame.scrollTop = (frame.scrollHeight - frame.clientHeight) * (to as number);
            return new Promise<number>((resolve) => {
              const look = () => {
                const r = frame.getBoundingClientRect();
                const there = document
                  .elementsFromPoint(r.left + 60, r.top + r.height / 2)
                  .some(
                    (e) =>
                      frame.contains(e) &&
                      e !== frame &&
                      /Line \d+ of/.test(e.textContent ?? '') &&
                      e.getBoundingClientRect().height < 300,
                  );
                if (there) resolve(performance.now() - began);
                else requestAnimationFrame(look);
              };
              requestAnimationFrame(look);
            });
          },
          [box, to],
        ),
      );
    }
    const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
    console.log(
      `log of 100 MB, ${show === 'log' ? 'raw' : 'conversation'}: a place anywhere is there after ${said(times)}; ${nodes} elements in the page`,
    );
  }
  p.run('stop', run);
}

async function diff(p: Project, page: Page): Promise<void> {
  agent(
    p,
    'rewrite',
    `
    import { writeFileSync } from 'node:fs';
    writeFileSync('src/big.ts', Array.from({ length: 10000 }, (_, i) => 'export const line' + i + ' = ' + i * 7 + ';').join('\\n') + '\\n');
    for (let f = 0; f < 100; f++) writeFileSync('src/f' + f + '.ts', Array.from({ length: 50 }, (_, i) => 'export const part' + i + ' = ' + f + ';').join('\\n') + '\\n');
    writeFileSync('src/ok', '');
    console.log(JSON.stringify({ type: 'text', text: '<promise>COMPLETE</promise>' }));
    console.log(JSON.stringify({ type: 'end', ok: true }));`,
  );
  p.run('run', 'rewrite', '-q');
  const run = await named(page, 'rewrite');
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    await page.goto(new URL(`/runs/${run}`, p.url).href);
    await page
      .getByText('of this run', { exact: false })
      .or(page.getByRole('tab', { name: /Changes/ }))
      .first()
      .waitFor();
    times.push(
      await page.evaluate(() => {
        const began = performance.now();
        document.querySelector<HTMLElement>('#tab-changes')!.click();
        return new Promise<number>((resolve) => {
          const look = () =>
            /export const line\d+ =/.test(document.querySelector('[aria-label=Changes]')?.textContent ?? '')
              ? requestAnimationFrame(() => resolve(performance.now() - began))
              : setTimeout(look, 2);
          look();
        });
      }),
    );
  }
  console.log(`diff of 15,000 lines in 101 files: open after ${said(times)}`);
}

/** tab watches a browser that nobody drives. */
async function tab(p: Project, page: Page): Promise<void> {
  agent(
    p,
    'steady',
    `
    let i = 0;
    const say = (e) => process.stdout.write(JSON.stringify(e) + '\\n');
    setInterval(() => { for (let n = 0; n < 5; n++) { i++; say(i % 3 === 0 ? { type: 'tool', name: 'Bash', command: 'go test ./internal/part' + i } : { type: 'text', text: 'Step ' + i + ': the test of part ' + i + ' says what is missing, and I look where it is made.' }); } }, 50);`,
  );
  p.begin('run', 'steady', '-q');
  const run = await named(page, 'steady');
  const home = join(p.dir, '..', 'browser');
  mkdirSync(home, { recursive: true });
  const url = new URL(p.url);
  url.pathname = `/runs/${run}`;
  const child = spawn(
    path,
    [
      '--headless=new',
      '--no-sandbox',
      '--disable-dev-shm-usage',
      '--no-first-run',
      '--disable-extensions',
      '--disable-background-networking',
      '--remote-debugging-port=0',
      `--user-data-dir=${home}`,
      '--window-size=1280,860',
      url.href,
    ],
    { stdio: 'ignore' },
  );
  const renderers = () =>
    readdirSync('/proc')
      .filter((n) => /^\d+$/.test(n))
      .filter((n) => {
        try {
          const line = readFileSync(`/proc/${n}/cmdline`, 'utf8');
          return line.includes('--type=renderer') && line.includes(home);
        } catch {
          return false;
        }
      })
      .map((n) => memory(n));
  try {
    const minutes = Number(process.env.TAB_MINUTES ?? 6);
    const points: { at: number; own: number }[] = [];
    const began = Date.now();
    let last = '';
    for (let at = 0; at < minutes * 60;) {
      await rest(5000);
      at = (Date.now() - began) / 1000;
      const all = renderers();
      if (all.length === 0) throw new Error('the browser has no page');
      const own = Math.max(...all.map((m) => m.own));
      points.push({ at, own });
      last = `${Math.round(own)} MB (${all.length} processes, ${Math.round(all.reduce((n, m) => n + m.own, 0))} MB in all)`;
      if (points.length % 12 === 0) console.log(`tab: after ${Math.round(at)} s ${last}`);
    }
    // What was measured is what was meant: the page shows what the agent says now.
    const port = readFileSync(join(home, 'DevToolsActivePort'), 'utf8').split('\n')[0];
    const other = await chromium.connectOverCDP(`http://127.0.0.1:${port}`);
    const watched = other
      .contexts()[0]!
      .pages()
      .find((g) => g.url().includes(run))!;
    const shown = await watched.textContent('[role=log]');
    // What is left when all garbage is collected is what the page really holds.
    const devtools = await watched.context().newCDPSession(watched);
    await devtools.send('HeapProfiler.collectGarbage');
    await devtools.send('Performance.enable');
    const { metrics } = await devtools.send('Performance.getMetrics');
    const metric = (name: string) => metrics.find((m) => m.name === name)?.value ?? 0;
    const alive = `${(metric('JSHeapUsedSize') / 2 ** 20).toFixed(1)} MB of heap, ${metric('Nodes')} nodes, ${metric('JSEventListeners')} listeners`;
    await other.close();
    await rest(5000);
    const collected = Math.round(Math.max(...renderers().map((m) => m.own)));
    const step = Number([...shown!.matchAll(/Step (\d+):/g)].at(-1)?.[1] ?? 0);
    if (step < minutes * 60 * 80) throw new Error(`the page is at step ${step} and does not follow`);
    // The slope of the later two thirds; the least of each half minute, since garbage comes and goes.
    const late = points.filter((q) => q.at > (minutes * 60) / 3);
    const least: { at: number; own: number }[] = [];
    for (let i = 0; i < late.length; i += 6) least.push(late.slice(i, i + 6).reduce((a, b) => (b.own < a.own ? b : a)));
    const mean = (f: (q: { at: number; own: number }) => number) => least.reduce((n, q) => n + f(q), 0) / least.length;
    const [t, m] = [mean((q) => q.at), mean((q) => q.own)];
    const slope = mean((q) => (q.at - t) * (q.own - m)) / mean((q) => (q.at - t) ** 2);
    const most = Math.max(...late.map((q) => q.own));
    console.log(
      `tab: ${last} after ${minutes} minutes of 100 events a second, at most ${Math.round(most)}; ${(slope * 60).toFixed(2)} MB a minute, so ${Math.round(most + Math.max(0, slope) * (3600 - minutes * 60))} MB after an hour`,
    );
    console.log(`tab: after a collection ${collected} MB, with ${alive}`);
  } finally {
    const gone = new Promise((r) => child.once('exit', r));
    child.kill('SIGTERM');
    await gone;
    rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    p.run('stop', run);
  }
}

const p = await make(process.env.PAWL ?? 'pawl');
let browser: Browser | undefined;
try {
  browser = await chromium.launch({ executablePath: path, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  if (wants('board') || wants('thin')) {
    writeFileSync(
      join(p.dir, 'many.md'),
      Array.from({ length: 10_000 }, (_, i) => `- [ ] Case number ${i + 1} of many\n  tags: t${i % 50}\n`).join(''),
    );
    p.run('case', 'add', '-f', 'many.md');
  }
  if (wants('thin')) await thin(p, browser);
  if (wants('board')) {
    writeFileSync(join(p.dir, 'src/ok'), '');
    for (let i = 0; i < 200; i++) p.run('run', 'reviewed', '-q', '--fresh');
  }
  const page = await browser.newPage();
  await page.goto(p.url);
  if (wants('board')) {
    await board(p, page);
    await viewers(p);
  }
  if (wants('log')) await log(p, page);
  if (wants('diff')) await diff(p, page);
  if (wants('tab')) {
    await page.goto('about:blank');
    await page.goto(p.url);
    await tab(p, page);
  }
} finally {
  await browser?.close();
  await p.close();
}
