// The keys of every page, beyond those that other tests press: each does what
// it says, and what it opens is closed by Escape.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { at, dialogs, happened, p, quiet, runs, viewer } from './rig';

/** asks presses a key that opens a dialog, and closes that. */
async function asks(page: Page, key: string, title: RegExp): Promise<void> {
  await page.keyboard.press(key);
  await page.getByRole('dialog', { name: title }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
}

test('every page is a key away', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  const wrong = quiet(page);
  await page.goto(at('/stats'));
  await page.getByRole('heading', { name: 'Runs that ended' }).waitFor();
  for (const [key, title] of [
    ['n', 'Now'],
    ['r', 'Runs'],
    ['b', 'Board'],
    ['q', 'Merge queue'],
    ['v', 'Review'],
    ['s', 'Sprint'],
    ['t', 'Statistics'],
    ['c', 'Configuration'],
  ] as const) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
  }
  await page.keyboard.press('S');
  await page.getByRole('heading', { level: 1, name: 'Sprint', exact: true }).waitFor();
  const before = await page.getByRole('button', { name: /^Colours/ }).getAttribute('aria-label');
  await page.keyboard.press('t');
  await page.waitForFunction(
    (before) => document.querySelector('button[aria-label^="Colours"]')?.getAttribute('aria-label') !== before,
    before,
  );
  await page.keyboard.press('i');
  await page.waitForFunction(
    () =>
      location.pathname.startsWith('/runs/') ||
      location.pathname.startsWith('/board/') ||
      location.pathname === '/review',
  );
  assert.deepEqual(wrong, []);
  await context.close();
});

test('keys of what needs a person, of runs, of statistics and of settings', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(at('/'));
  const open = page.getByRole('button', { expanded: true });
  await open.waitFor();
  const first = await open.locator('strong').textContent();
  await page.keyboard.press('j');
  await page.waitForFunction(
    (first) => document.querySelector('[aria-expanded="true"] strong')?.textContent !== first,
    first,
  );
  await page.keyboard.press('k');
  await page.waitForFunction(
    (first) => document.querySelector('[aria-expanded="true"] strong')?.textContent === first,
    first,
  );
  await asks(page, 'n', /Start a procedure/);
  await asks(page, 'm', /Message to the agent of slow-import/);
  await asks(page, 'x', /Stop slow-import/);
  await page.keyboard.press('ArrowDown');
  await page.waitForFunction(
    (first) => document.querySelector('[aria-expanded="true"] strong')?.textContent !== first,
    first,
  );
  await page.keyboard.press('ArrowUp');
  await page.waitForFunction(
    (first) => document.querySelector('[aria-expanded="true"] strong')?.textContent === first,
    first,
  );
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Runs' }).first().waitFor();
  await page.waitForFunction(() => location.pathname.startsWith('/runs/'));

  await page.goto(at('/runs'));
  await page.getByRole('option', { name: /slow-import/ }).waitFor();
  await page.keyboard.press('j');
  await page.getByRole('listbox', { name: 'Runs' }).getByRole('option', { selected: true }).waitFor();
  for (const [order, sums] of [
    ['By cost', 0],
    ['By time', 0],
    ['By iterations', 0],
    ['Newest first', 1],
  ] as const) {
    await page.keyboard.press('s');
    await page.waitForFunction(
      ([order, sums]) =>
        document.querySelector<HTMLSelectElement>('[aria-label=Order]')?.selectedOptions[0]?.text === order &&
        document.querySelectorAll('.day').length === sums,
      [order, sums] as const,
    );
  }
  await asks(page, 'n', /Start a procedure/);
  await page.keyboard.press('/');
  await page.keyboard.type('slow');
  await page.waitForFunction(() => document.querySelectorAll('[role=option]').length === 1);
  await page.getByRole('option', { name: /slow-import/ }).click();
  await page.waitForFunction(
    () =>
      location.pathname.startsWith('/runs/') || document.querySelector('[role=option][aria-selected=true]') !== null,
  );

  await page.goto(at('/stats'));
  await page.getByRole('region', { name: 'Totals' }).getByRole('rowheader', { name: 'All' }).waitFor();
  for (const [key, days] of [
    ['1', '7'],
    ['3', '90'],
    ['2', '30'],
  ] as const) {
    await page.keyboard.press(key);
    await page.getByRole('button', { name: new RegExp(`^${days} days`), pressed: true }).waitFor();
  }
  await page.goto(at('/config'));
  await page.getByText('loop.safety').first().waitFor();
  await page.keyboard.press('a');
  await page.getByText('merge.escalation_action').first().waitFor();
  await page.keyboard.press('r');
  await page.keyboard.press('/');
  await page.keyboard.type('escalation_action');
  await page.getByText('loop.safety').first().waitFor({ state: 'detached' });
  await context.close();
});

test('a run is told something and gets more room while it works, by key', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(at(`/runs/${runs['slow-import']}`));
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  for (const [key, tab] of [
    ['d', 'Changes'],
    ['p', 'Prompt'],
    ['l', 'Raw output'],
    ['o', 'Conversation'],
  ] as const) {
    await page.keyboard.press(key);
    await page.getByRole('tab', { name: new RegExp(`^${tab}`), selected: true }).waitFor();
  }
  await page.keyboard.press('m');
  await page.getByRole('dialog').getByRole('textbox', { name: 'Message' }).fill('Mind the last line.');
  await page.keyboard.press('Control+Enter');
  await page.getByText('The message goes into the next prompt').waitFor();
  await dialogs(page, 0);
  await page.keyboard.press('+');
  await page
    .getByRole('dialog', { name: /Raise the limits/ })
    .getByLabel(/^Iterations at most/)
    .fill('21');
  await page.keyboard.press('Control+Enter');
  await page.getByText('has new limits').waitFor();
  await page.getByText('1 of 21').waitFor();
  for (const kind of ['message.left', 'limits.raised']) await happened(page, runs['slow-import'], kind);

  await page.goto(at(`/runs/${runs['retry-webhooks']}`));
  await page.getByRole('option', { name: /^2/ }).waitFor();
  await page.keyboard.press('k');
  await page.getByRole('heading', { name: 'Iteration 1' }).waitFor();
  await page.keyboard.press('j');
  await page.getByRole('heading', { name: 'Iteration 2' }).waitFor();
  await context.close();
});

test('a case is added, edited, blocked, taken up and removed by key, while another looks at it', async () => {
  const one = await viewer(1280);
  const two = await viewer(1280);
  const [page, other] = [await one.newPage(), await two.newPage()];
  await page.goto(at('/board'));
  await page.getByText('Number invoices without gaps').waitFor();
  await page.keyboard.press('v');
  await page.getByRole('listbox', { name: 'Tasks by operation' }).waitFor();
  await page.keyboard.press('v');
  await page.getByRole('region', { name: 'Graph of needs' }).waitFor();
  await page.keyboard.press('v');
  await page.getByRole('listbox', { name: 'Pending' }).waitFor();
  await page.keyboard.press('n');
  await page.getByLabel('What should be done?').fill('\u05e9\u05dc\u05d5\u05dd: greet in Hebrew');
  await page.keyboard.press('Control+Enter');
  const added = page.getByRole('option', { name: /greet in Hebrew/ });
  await added.waitFor();
  await page.waitForFunction(
    () => document.querySelector('dialog[open]') !== null || document.querySelector('[role=option]') !== null,
  );
  if ((await page.getByRole('dialog').count()) === 0) await added.click();
  const panel = page.getByRole('dialog', { name: /^task-/ });
  await panel.getByRole('heading', { name: 'History' }).waitFor();
  const id = (await panel.getByRole('heading', { name: /^task-/ }).textContent())!.trim();
  await other.goto(at(`/board/${id}`));
  await other.getByRole('dialog', { name: id }).getByRole('heading', { name: 'History' }).waitFor();
  await page.keyboard.press('e');
  await page.getByLabel('Title').fill('Greet in Hebrew');
  await page.keyboard.press('Control+Enter');
  await dialogs(page, 1);
  await panel.getByText('Greet in Hebrew').waitFor();
  await other.getByRole('dialog', { name: id }).getByText('Greet in Hebrew').waitFor();
  await page.keyboard.press('d');
  await panel.getByText('deferred').first().waitFor();
  await page.keyboard.press('d');
  await panel.getByRole('button', { name: /^Block/ }).waitFor();
  await page.keyboard.press('b');
  await page.getByLabel('What must happen first?').fill('Wait');
  await page.keyboard.press('Control+Enter');
  await dialogs(page, 1);
  await panel.getByRole('button', { name: /^Unblock/ }).waitFor();
  await page.keyboard.press('u');
  await panel.getByRole('button', { name: /^Block/ }).waitFor();
  await page.keyboard.press('Delete');
  await page.getByRole('button', { name: /^Remove it/ }).click();
  await page.getByText(`${id} is removed.`).waitFor();
  await other.getByText('it may have been removed').waitFor();
  assert.equal(p.run('case', 'list').includes(id), false);
  await one.close();
  await two.close();
});

test('a clock that differs makes no time to come', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.clock.install({ time: Date.now() - 3 * 3600_000 });
  await page.goto(at('/runs'));
  await page.getByRole('option', { name: /slow-import/ }).waitFor();
  await page
    .getByRole('option', { name: /slow-import/ })
    .getByText(/ago|just now/)
    .first()
    .waitFor();
  assert.equal(await page.getByText(/^in \d+h/).count(), 0);
  await context.close();
});

test('a phone begins with columns that hold something', async () => {
  const context = await viewer(400);
  const page = await context.newPage();
  await page.goto(at('/board'));
  await page.getByText('Number invoices without gaps').waitFor();
  assert.equal(await page.getByRole('region', { name: 'Active', exact: true }).isVisible(), false);
  await page.getByLabel('Show one status').selectOption({ label: 'Active (0)' });
  await page.getByRole('region', { name: 'Active', exact: true }).waitFor();
  await context.close();
});
