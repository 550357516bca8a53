// What stays, and what comes, while a page is open.

import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { api, at, p, viewer } from './rig';

/** tell lets the talker say more. */
function tell(...lines: string[]): void {
  writeFileSync(join(p.dir, 'talk.new'), lines.join('\n'));
  renameSync(join(p.dir, 'talk.new'), join(p.dir, 'talk.txt'));
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

test('of a conversation of any length the place in view is there, and what comes', async () => {
  p.begin('run', 'talk', '-q');
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(at('/'));
  await page.getByRole('article', { name: 'talk' }).waitFor();
  const run = ((await api(page, '/api/v1/runs')).runs as { name: string; run: string }[]).find((r) => r.name === 'talk')!.run;
  await page.goto(at(`/runs/${run}`));
  const box = '[role=log]';
  const scroll = (to: number) => page.evaluate(([box, to]) => { const b = document.querySelector(box as string)!; b.scrollTop = b.scrollHeight * (to as number); }, [box, to]);
  await seen(page, box, 'Thing 20000 of');
  tell('The first thing that comes.');
  await seen(page, box, 'The first thing that comes.');
  // While more comes than is looked at, the view stays at the end.
  tell('count 600');
  await seen(page, box, 'Counted to 600.');
  await scroll(0);
  await seen(page, box, 'Thing 1 of');
  await scroll(0.5);
  await page.waitForFunction(() => /Thing (9|1[01])\d\d\d of/.test(document.querySelector('[role=log]')!.textContent!));
  assert.ok((await page.evaluate(() => document.querySelectorAll('[role=log] .turn').length)) < 1000, 'most of it is not in the page');

  // What comes moves nothing while a person reads elsewhere.
  const first = () =>
    page.evaluate(() => {
      const box = document.querySelector('[role=log]')!;
      const edge = box.getBoundingClientRect().top;
      return [...box.querySelectorAll('.turn')].find((t) => t.getBoundingClientRect().top >= edge)!.textContent!;
    });
  const before = await first();
  tell('The second thing that comes.');
  await page.waitForFunction(async (run) => {
    const c = (await (await fetch(`/api/v1/runs/${run}/iterations/1/conversation?tail=true&limit=1`)).json()) as { events: { text?: string }[] };
    return c.events[0]?.text?.startsWith('The second thing');
  }, run);
  assert.equal(await first(), before);
  await scroll(1);
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
  p.run('stop', run);
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
