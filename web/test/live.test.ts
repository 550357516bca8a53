// What stays, and what comes, while a page is open.

import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { make } from './project';
import { api, at, entered, p, runs, until, viewer } from './rig';

/** tell lets the talker say more. */
function tell(...lines: string[]): void {
  writeFileSync(join(p.home, 'talk.new'), lines.join('\n'));
  renameSync(join(p.home, 'talk.new'), join(p.home, 'talk.txt'));
}

/** seen waits until a text is in the part of a box that can be seen. */
async function seen(page: Page, box: string, text: string): Promise<void> {
  await page.waitForFunction(
    ([box, text]) => {
      const frame = document.querySelector(box!)!;
      const { top, bottom } = frame.getBoundingClientRect();
      const walk = document.createTreeWalker(frame, NodeFilter.SHOW_TEXT);
      for (let n = walk.nextNode(); n; n = walk.nextNode()) {
        if (!n.textContent!.includes(text!)) continue;
        const r = n.parentElement!.getBoundingClientRect();
        if (r.bottom > top && r.top < bottom) return true;
      }
      return false;
    },
    [box, text],
  );
}

test('a search that goes into the address keeps the focus and every letter', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  for (const [path, label] of [
    ['/config', 'Search the settings'],
    ['/runs', 'Search the runs'],
    ['/board', 'Filter the board'],
  ] as const) {
    await page.goto(at(path));
    const search = page.getByLabel(label);
    await search.focus();
    await page.keyboard.type('safety');
    await page.waitForFunction(() => new URLSearchParams(location.search).get('q') === 'safety');
    assert.equal(await page.evaluate(() => (document.activeElement as HTMLInputElement).value), 'safety', path);
  }
  await context.close();
});

test('of a conversation of any length the place in view is there, and what comes', async (t) => {
  p.begin('run', 'talk', '-q');
  t.after(() => p.run('stop', 'talk'));
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(at('/'));
  await page.getByRole('article', { name: 'talk' }).waitFor();
  const run = ((await api(page, '/api/v1/runs')).runs as { name: string; run: string }[]).find(
    (r) => r.name === 'talk',
  )!.run;
  await page.goto(at(`/runs/${run}`));
  const box = '[role=log]';
  const scroll = (to: number, less = 0) =>
    page.evaluate(
      ([box, to, less]) => {
        const b = document.querySelector(box as string)!;
        b.scrollTop = b.scrollHeight * (to as number) - (less as number);
      },
      [box, to, less],
    );
  await seen(page, box, 'Thing 20000 of');
  tell('The first thing that comes.');
  await seen(page, box, 'The first thing that comes.');
  // While more comes than is looked at, the view stays at the end.
  tell('count 600');
  await seen(page, box, 'Counted to 600.');
  await scroll(0);
  await seen(page, box, 'Thing 1 of');
  await scroll(0.5);
  await page.waitForFunction(() => /Thing (9|1[01])\d\d\d of/.test(document.querySelector('[role=log]')!.textContent));
  assert.ok(
    (await page.evaluate(() => document.querySelectorAll('[role=log] .turn').length)) < 1000,
    'most of it is not in the page',
  );

  // What comes moves nothing while a person reads elsewhere.
  const first = () =>
    page.evaluate(() => {
      const box = document.querySelector('[role=log]')!;
      const edge = box.getBoundingClientRect().top;
      return [...box.querySelectorAll('.turn')].find((t) => t.getBoundingClientRect().top >= edge)!.textContent;
    });
  const before = await first();
  tell('The second thing that comes.');
  await until<{ events: { text?: string }[] }>(
    page,
    `/api/v1/runs/${run}/iterations/1/conversation?tail=true&limit=1`,
    (c) => c.events[0]?.text?.startsWith('The second thing') ?? false,
  );
  assert.equal(await first(), before);
  await scroll(1);
  await seen(page, box, 'The second thing that comes.');
  // Who comes near the end sees it too: it may have moved on meanwhile.
  await scroll(0.5);
  await page.waitForFunction(() => /Thing (9|1[01])\d\d\d of/.test(document.querySelector('[role=log]')!.textContent));
  await scroll(1, (await page.evaluate(() => document.querySelector('[role=log]')!.clientHeight)) + 200);
  await seen(page, box, 'The second thing that comes.');

  // The raw output likewise.
  await page.keyboard.press('l');
  const raw = '[role=region][aria-label="agent.out"]';
  await page.waitForSelector(raw);
  await seen(page, raw, 'The second thing that comes.');
  tell('The third thing that comes.');
  await seen(page, raw, 'The third thing that comes.');
  await page.getByRole('button', { name: 'Beginning' }).click();
  await seen(page, raw, 'Thing 1 of');
  await context.close();
});

test('more pages of one browser than it has connections see everything', async () => {
  const context = await viewer(1280);
  const pages: Page[] = [];
  for (let i = 0; i < 8; i++) {
    const page = await context.newPage();
    pages.push(page);
    await page.goto(at('/board?q=pages'));
    await page.getByText('Live', { exact: true }).waitFor();
  }
  p.run('case', 'add', 'Seen by all pages');
  for (const page of pages) await page.getByRole('option', { name: /Seen by all pages/ }).waitFor();
  // When those go that came first, the others stay.
  for (const page of pages.splice(0, 6)) await page.close();
  p.run('case', 'add', 'Seen by the pages that are left');
  for (const page of pages) await page.getByRole('option', { name: /Seen by the pages that are left/ }).waitFor();
  await context.close();
});

test('what happens while a page loads is on it, whatever comes first', async () => {
  const context = await viewer(1280);
  // The list of cases comes after what happened since it was asked for.
  const page = await context.newPage();
  let go: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (go = resolve));
  let had: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => (had = resolve));
  await page.route('**/api/v1/cases?*', async (route) => {
    const response = await route.fetch();
    had();
    await held;
    await route.fulfill({ response });
  });
  await page.goto(at('/board'));
  await asked;
  p.run('case', 'block', 'task-004', '--why', 'First the archive');
  const row = page.getByRole('listbox', { name: 'Blocked' }).getByRole('option', { name: /task-004/ });
  await row.waitFor();
  go();
  await page
    .getByRole('listbox', { name: 'Pending' })
    .getByRole('option', { name: /task-003/ })
    .waitFor();
  assert.equal(await row.count(), 1);
  p.run('case', 'unblock', 'task-004');

  // Something happens after the page is there, and before its stream is.
  const other = await context.newPage();
  await other.addInitScript(() => Reflect.deleteProperty(window, 'SharedWorker'));
  await other.route('**/api/v1/events*', async (route) => {
    p.run('message', runs['slow-import']!, 'Before the stream');
    await route.continue();
  });
  await other.goto(at(`/runs/${runs['slow-import']}`));
  await other.getByText('Before the stream').first().waitFor();
  for (const one of [page, other]) await one.unrouteAll({ behavior: 'ignoreErrors' });
  await context.close();
});

test('a text that is being written stays while the server is away', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(at('/board'));
  await page.getByText('Number invoices without gaps').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await page.keyboard.press('n');
  const dialog = page.getByRole('dialog');
  const title = dialog.getByRole('textbox').first();
  await title.pressSequentially('Half a ti');
  await p.restart(() => p.run('case', 'add', 'Added while a person writes'));
  await page.getByRole('option', { name: /Added while a person writes/, includeHidden: true }).waitFor();
  assert.equal(await title.inputValue(), 'Half a ti');
  await page.keyboard.type('tle');
  assert.equal(await title.inputValue(), 'Half a title');
  await context.close();
});

test('what was written is not lost when it cannot be sent', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(at('/board'));
  await page.getByText('Number invoices without gaps').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await page.keyboard.press('n');
  const title = page.getByLabel('What should be done?');
  const alert = page.getByRole('dialog').getByRole('alert');
  await p.restart(async () => {
    await title.fill('Written before the server ended');
    await page.getByLabel(/^Description/).fill('In many words.');
    await page.keyboard.press('Control+Enter');
    await alert.getByText('cannot be reached').waitFor();
    await alert.getByText('pawl serve').waitFor();
  });
  assert.equal(await title.inputValue(), 'Written before the server ended');
  assert.equal(await page.getByLabel(/^Description/).inputValue(), 'In many words.');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('dialog', { name: 'Add a task' }).waitFor({ state: 'detached' });
  await page.getByRole('option', { name: /Written before the server ended/ }).waitFor();

  // A text that is too long is not lost either: it can be shortened.
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('n');
  for (const length of [1 << 20, 501]) {
    await title.fill('x'.repeat(length));
    await page.keyboard.press('Control+Enter');
    await alert
      .getByText(length > 1000 ? 'larger than 1 MiB' : /title/)
      .first()
      .waitFor();
    assert.equal((await title.inputValue()).length, length);
  }
  const long = 'Long'.repeat(125);
  await title.fill(long);
  await page.keyboard.press('Control+Enter');
  await page.getByRole('dialog', { name: 'Add a task' }).waitFor({ state: 'detached' });
  await page.setViewportSize({ width: 400, height: 860 });
  for (const path of ['/board?q=longlong', '/board?q=longlong&view=groups']) {
    await page.goto(at(path));
    await page.getByRole('option', { name: /LongLong/ }).waitFor();
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 400, path);
  }
  await page.getByRole('option', { name: /LongLong/ }).click();
  await page.getByRole('dialog').getByText(long).waitFor();
  assert.ok((await page.evaluate(() => document.querySelector('dialog')!.scrollWidth)) <= 400);
  await context.close();
});

test('a browser without shared workers has a stream for each page, and a reader that was dropped comes back', async () => {
  const context = await viewer(1280);
  await context.addInitScript(() => Reflect.deleteProperty(window, 'SharedWorker'));
  const page = await context.newPage();
  const opened: string[] = [];
  let cursor = '';
  await page.route('**/api/v1/events*', (route) => {
    opened.push(new URL(route.request().url()).searchParams.get('after') ?? '');
    if (opened.length > 1) return route.continue();
    // The first stream is one that read too slowly; what happens before the next one is not in it.
    const hello = JSON.stringify({ cursor, version: 'v', now: new Date().toISOString() });
    return route.fulfill({
      contentType: 'text/event-stream',
      body: `event: hello\ndata: ${hello}\n\nevent: dropped\ndata: {"why":"slow"}\n\n`,
    });
  });
  const other = await context.newPage();
  await other.goto(at('/config'));
  cursor = await other.evaluate(
    () =>
      new Promise<string>((resolve) => {
        const s = new EventSource(`/api/v1/events?key=${localStorage.getItem('pawl.key')}`);
        s.addEventListener(
          'hello',
          (e) => (s.close(), resolve((JSON.parse((e as MessageEvent<string>).data) as { cursor: string }).cursor)),
        );
      }),
  );
  p.run('case', 'add', 'Came while it was dropped');
  await page.goto(at('/board?q=dropped'));
  await page.getByText('Live', { exact: true }).waitFor();
  await page.getByText('1 task that fit').waitFor();
  p.run('case', 'add', 'Came after it was dropped');
  await page.getByText('2 tasks that fit').waitFor();
  assert.equal(opened[1], cursor);
  assert.equal(await page.getByRole('listbox', { name: 'Pending' }).getByRole('option').count(), 2);
  // Without a worker each page has a stream of its own.
  await other.goto(at('/board?q=dropped'));
  await other.getByText('2 tasks that fit').waitFor();
  await other.getByText('Live', { exact: true }).waitFor();
  p.run('case', 'add', 'Dropped a third time');
  await page.getByText('3 tasks that fit').waitFor();
  await other.getByText('3 tasks that fit').waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await context.close();
});

test('a viewer that slept for an hour sees everything, and nothing twice', async () => {
  const own = await make(process.env.PAWL ?? 'pawl', {
    'night.md': Array.from({ length: 5001 }, (_, i) => `- [ ] Night ${i}\n`).join(''),
  });
  const context = await entered(own.url, 1280);
  try {
    const page = await context.newPage();
    await page.clock.install();
    await page.goto(new URL('/board?q=night', own.url).href);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('0 tasks that fit').or(page.getByText('The board is empty')).first().waitFor();
    const see = (seen: boolean) =>
      page.evaluate((seen) => {
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => !seen });
        document.dispatchEvent(new Event('visibilitychange'));
      }, seen);
    await see(false);
    await page.clock.fastForward(3_600_000);
    own.run('case', 'add', '-f', 'night.md');
    // The server sends no more than 5,000 again: it says that all is to be loaded anew.
    // A server that still has readers is on its way there, and sends what they have, too.
    await page.evaluate(async () => {
      const first = () =>
        new Promise((resolve) => {
          const s = new EventSource(`/api/v1/events?after=0-0&key=${localStorage.getItem('pawl.key')}`);
          for (const kind of ['reset', 'case']) s.addEventListener(kind, () => (s.close(), resolve(kind)));
        });
      while ((await first()) !== 'reset');
    });
    await see(true);
    await page.getByText('5,001 tasks that fit').waitFor();
    own.run('case', 'add', 'Night watch');
    await page.getByText('5,002 tasks that fit').waitFor();
    await page.getByRole('listbox', { name: 'Pending' }).getByText(/ready/).first().waitFor();
  } finally {
    await context.close();
    await own.close();
  }
});
