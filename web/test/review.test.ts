// Comments of a review: they keep side and line, go with the decision, and the next review shows what became of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, make } from './project';
import { entered, quiet } from './rig';

const files = {
  'pawl.yaml': `
agent: script
agents: {script: {command: [agent.yaml]}}
loop: {safety: permissive}
review: {mode: person}
verification: {commands: [{name: unit, command: "true"}]}
`,
  'agent.yaml': `
name: demo
turns:
  - - run: "if grep -q 'new line' list.txt; then sed -i 's/new line/newer line/' list.txt; else sed -i '20s/.*/new line/' list.txt; fi"
    - say: "<promise>COMPLETE</promise>"
`,
  'list.txt': Array.from({ length: 40 }, (_, i) => `line ${i + 1}\n`).join(''),
};

test('comments keep their side and line, and are seen in the next review', async (t) => {
  const p = await make(process.env.PAWL ?? 'pawl', files);
  t.after(() => p.close());
  p.run('case', 'add', 'Change the list');
  p.run('sprint', '--no-ready', '--batch-review', '-q');
  const context = await entered(p.url, 1280);
  const page = await context.newPage();
  const wrong = quiet(page);
  await page.goto(new URL('/review', p.url).href);
  const diff = page.getByRole('region', { name: 'Changes' });
  await diff.getByText('new line').waitFor();

  // Lines that did not change unfold.
  assert.equal(await diff.getByText('line 1', { exact: true }).count(), 0);
  await diff.getByRole('button', { name: 'Show all unchanged lines of list.txt' }).first().click();
  await diff.getByText('line 1', { exact: true }).waitFor();

  const comment = async (at: number, text: string) => {
    await diff.getByRole('button', { name: 'Comment on line 20' }).nth(at).click();
    await page.getByLabel('What must change here?').fill(text);
    await page.keyboard.press('Control+Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  };
  await comment(0, 'This one was right');
  await comment(1, 'Say which line');
  await page.reload();
  const list = page.getByRole('region', { name: 'Comments' });
  await list.getByText('list.txt:20 (removed)').waitFor();
  assert.equal(await list.getByRole('listitem').count(), 2);
  await page.getByRole('button', { name: /^Redo with 2 comments/ }).click();
  await page.keyboard.press('Control+Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });

  // The next review, in another browser.
  p.run('sprint', '--no-ready', '--batch-review', '-q');
  const other = await entered(p.url, 390);
  const phone = await other.newPage();
  await phone.goto(new URL('/review', p.url).href);
  const then = phone.getByRole('region', { name: 'Comments' });
  await then.getByRole('listitem').filter({ hasText: 'Say which line' }).getByText('has changed since').waitFor();
  await then.getByRole('listitem').filter({ hasText: 'This one was right' }).getByText('is as it was').waitFor();
  assert.equal(await then.getByRole('listitem').count(), 2);
  await phone.setViewportSize({ width: 320, height: 860 });
  const outside = await phone.evaluate(() =>
    [...document.querySelectorAll('[aria-label="The chosen work"] *')]
      .filter((e) => e.getBoundingClientRect().right > e.closest('.card')!.getBoundingClientRect().right)
      .map((e) => e.textContent),
  );
  assert.deepEqual(outside, []);

  // What is said with an approval stays, too.
  await page.reload();
  await diff.getByText('newer line').waitFor();
  await diff.getByRole('button', { name: 'Comment on line 20' }).nth(1).click();
  await page.getByLabel('What must change here?').fill('Good as it is');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: /^Approve/ }).click();
  await page
    .getByText(/approved, and waits to land/)
    .first()
    .waitFor();
  const { history } = (await api(page, '/api/v1/cases/task-001')) as { history: { action: string; why: string }[] };
  assert.match(history.find((h) => h.action === 'approve')!.why, /list\.txt:20: Good as it is\n> newer line/);
  assert.deepEqual(wrong, []);
  await other.close();
  await context.close();
});
