// What stays where it is while things happen: a person reads it, and clicks on it.

import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { at, p, runs, viewer } from './rig';

/** measure begins to add up what moves on a page without the person's doing, as browsers do: 0.1 is a tenth of the window. */
const measure = (page: Page) =>
  page.evaluate(() => {
    const w = window as unknown as { moved: { value: number; what: string[] } };
    w.moved = { value: 0, what: [] };
    new PerformanceObserver((list) => {
      for (const e of list.getEntries() as unknown as {
        value: number;
        hadRecentInput: boolean;
        sources: { node: Node | null }[];
      }[]) {
        if (e.hadRecentInput) continue;
        w.moved.value += e.value;
        w.moved.what.push(...e.sources.map((s) => `${e.value.toFixed(4)} ${s.node?.textContent?.slice(0, 60)}`));
      }
    }).observe({ type: 'layout-shift' });
  });

/** still says that nothing has moved by more than a figure that got wider. */
async function still(page: Page, name: string): Promise<void> {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const moved = await page.evaluate(() => (window as unknown as { moved: { value: number; what: string[] } }).moved);
  assert.ok(moved.value < 0.005, `${name} moved by ${moved.value}: ${moved.what.join('; ')}`);
}

test('nothing on a page moves while things happen', async (t) => {
  const context = await viewer(1280);
  const open = async (path: string, ready: (page: Page) => Promise<unknown>) => {
    const page = await context.newPage();
    await page.goto(at(path));
    await page.getByText('Live', { exact: true }).waitFor();
    await ready(page);
    await page.evaluate(() => document.fonts.ready);
    return page;
  };
  const now = await open('/', (g) =>
    g.getByRole('article', { name: 'slow-import' }).getByText('only it. Next is').waitFor(),
  );
  const board = await open('/board', (g) => g.getByText('Number invoices without gaps').waitFor());
  const list = await open('/runs', (g) => g.getByRole('option', { name: /slow-import/ }).waitFor());
  const one = await open(`/runs/${runs['slow-import']}`, async (g) => {
    await g.getByRole('log').getByText('only it. Next is').waitFor();
    await g
      .getByText(/ in, .* out/)
      .first()
      .waitFor(); // the figures beside it
  });
  for (const page of [now, board, list, one]) await measure(page);
  const place = async (page: Page, name: RegExp) => (await page.getByRole('option', { name }).boundingBox())!;
  const before = await place(board, /task-001/);
  // The inbox has the focus, in words that are half written.
  await now.getByRole('button', { name: /registry-access/ }).click();
  await now.getByLabel('Your answer in words').fill('The tok');

  // An agent begins, speaks and is stopped.
  p.begin('run', 'chat', '-q');
  t.after(() => p.run('stop', 'chat'));
  const card = now.getByRole('article', { name: 'chat' });
  await card.getByText('Thing 20 of').waitFor();
  await list.getByRole('listbox', { name: 'Runs' }).getByRole('option', { name: /chat/ }).waitFor();
  writeFileSync(join(p.home, 'talk.new'), 'Something else.');
  renameSync(join(p.home, 'talk.new'), join(p.home, 'talk.txt'));
  await card.getByText('Something else.').waitFor();
  p.run('stop', 'chat');
  await list
    .getByRole('listbox', { name: 'Runs' })
    .getByRole('option', { name: /chat/ })
    .locator('.badge', { hasText: /stopped/ })
    .waitFor();
  await card.waitFor({ state: 'detached' });
  await still(now, 'now');
  // What needs a person later comes below what is open, and pushes nothing but what is below.
  const asked = now.getByRole('button', { name: /registry-access/ });
  const top = (await asked.boundingBox())!.y;
  const added = /task-\d+/.exec(p.run('case', 'add', 'Comes last'))![0];
  await board.getByRole('option', { name: /Comes last/ }).waitFor();
  p.run('case', 'block', 'task-010', '--why', 'Later');
  await board
    .getByRole('listbox', { name: 'Blocked' })
    .getByRole('option', { name: /task-010/ })
    .waitFor();
  await now.getByRole('button', { name: /task-010/ }).waitFor();
  p.run('case', 'unblock', 'task-010');
  await board
    .getByRole('listbox', { name: 'Pending' })
    .getByRole('option', { name: /task-010/ })
    .waitFor();
  t.after(() => p.run('case', 'edit', 'task-001', '--title', 'Number invoices without gaps')); // others look for it
  p.run('case', 'edit', 'task-001', '--title', 'Number invoices without any gap');
  await board.getByText('Number invoices without any gap').waitFor();
  for (const [name, page] of Object.entries({ board, list, one })) await still(page, name);
  assert.equal((await asked.boundingBox())!.y, top);
  assert.deepEqual(await place(board, /task-001/), before);
  assert.equal(await now.evaluate(() => (document.activeElement as HTMLTextAreaElement).value), 'The tok');
  await now.keyboard.type('en is set');
  assert.equal(await now.getByLabel('Your answer in words').inputValue(), 'The token is set');
  for (const id of [added, 'task-010']) p.run('case', 'defer', id); // a column shows what fits into it
  await context.close();
});

for (const width of [390, 800, 1280]) {
  test(`no button moves when the figures of a page come, ${width} px`, async () => {
    const context = await viewer(width);
    const page = await context.newPage();
    const heads = {
      '/': [/^Start a procedure/, / ready to start/],
      '/board': [/^Add a task/, / tasks$/],
      '/runs': [/^Start a procedure/, /^\d+ runs$/],
      '/stats': [/^30 days/, / ended, /],
      '/config': [/^Read it again/, / settings$/],
    };
    for (const [path, [name, words]] of Object.entries(heads)) {
      // Its figures come when the page has been looked at.
      let come = () => {};
      const seen = new Promise<void>((resolve) => (come = resolve));
      await page.route('**/api/**', (route) => seen.then(() => route.continue()));
      await page.goto(at(path));
      const button = page.getByRole('button', { name }).first();
      const before = await button.boundingBox();
      const figures = page.locator('header').getByText(words!);
      assert.equal(await figures.count(), 0, path);
      come();
      await figures.waitFor();
      assert.deepEqual(await button.boundingBox(), before, path);
      await page.unroute('**/api/**');
    }
    await context.close();
  });
}
