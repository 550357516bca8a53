// Ctrl K finds what there is, and the browser says when a person is needed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, dialogs, p, quiet, runs, until, viewer, violations } from './rig';

test('tasks, runs, pages and actions are found by a part of their words', async () => {
  for (const [width, scheme] of [
    [1280, 'light'],
    [390, 'dark'],
  ] as const) {
    const context = await viewer(width, scheme);
    const page = await context.newPage();
    const wrong = quiet(page);
    const find = async (words: string, option: RegExp) => {
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: 'A task, a run, a page or an action' }).pressSequentially(words);
      await page.getByRole('option', { name: option }).first().waitFor();
    };
    await page.goto(at('/stats'));
    await page.getByRole('heading', { level: 1, name: 'Statistics' }).waitFor();
    await find('gaps', /Number invoices without gaps/);
    assert.deepEqual(await violations(page), []);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: /^task-/ }).waitFor();
    if (width < 500) {
      await context.close();
      continue;
    }
    // Also over a task's panel, in a text, and for a page by mouse.
    await find('hostile', /^Run hostile/);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await page.waitForFunction((id) => location.pathname === `/runs/${id}`, runs['hostile']);
    await find('merge queue', /Go to Merge queue/);
    await page.getByRole('option', { name: /Go to Merge queue/ }).click();
    await page.getByRole('heading', { level: 1, name: 'Merge queue' }).waitFor();
    await find('keys of', /Show the keys/);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Keys of this page' }).waitFor();
    await page.keyboard.press('Control+k'); // nothing, over the keys
    await page.keyboard.press('Escape');
    await dialogs(page, 0);
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('<script>no such thing');
    await page.getByText('Nothing found.').waitFor();
    await page.keyboard.press('Escape');
    await dialogs(page, 0);
    assert.deepEqual(wrong, []);
    await context.close();
  }
});

test('a page that nobody looks at says when a person is needed, once', async () => {
  const context = await viewer(1280);
  await context.addInitScript(() => {
    const told: string[] = [];
    Object.assign(window, { told });
    class Fake {
      static permission = 'default';
      static requestPermission = async () => (Fake.permission = 'granted');
      close = () => undefined;
      constructor(title: string, options: { body: string; tag: string }) {
        told.push(`${title}: ${options.body}`);
      }
    }
    Object.assign(window, { Notification: Fake });
  });
  const page = await context.newPage();
  await page.goto(at('/'));
  const ask = page.getByRole('button', { name: 'Notify me when I am needed' });
  await ask.click();
  await ask.waitFor({ state: 'detached' });
  const told = () => page.evaluate(() => (window as unknown as { told: string[] }).told);
  p.run('case', 'add', 'Waits <b>for</b> somebody');
  const { cases } = await until<{ cases: { id: string }[] }>(page, '/api/v1/cases?q=Waits', (a) => a.cases.length > 0);
  const id = cases[0]!.id;
  const inbox = (there: boolean) =>
    until<{ entries: { case?: { id: string } }[] }>(
      page,
      '/api/v1/inbox',
      (a) => a.entries.some((n) => n.case?.id === id) === there,
    );
  p.run('case', 'block', id, '--why', 'while somebody looks');
  await page.getByText('while somebody looks').first().waitFor();
  p.run('case', 'unblock', id);
  await page.getByText('while somebody looks').first().waitFor({ state: 'detached' });
  await inbox(false);
  assert.deepEqual(await told(), []);
  await page.evaluate(() => Object.defineProperty(document, 'visibilityState', { value: 'hidden' }));
  p.run('case', 'block', id, '--why', 'the <i>word</i> is missing');
  await page.waitForFunction(() => (window as unknown as { told: string[] }).told.length > 0);
  assert.equal((await told()).length, 1);
  assert.match((await told())[0]!, /Waits <b>for<\/b> somebody: the <i>word<\/i> is missing/);
  p.run('case', 'remove', id);
  // A phone can install the pages: the manifest is there for who was let in.
  const manifest = await page.evaluate(async () =>
    (await fetch(document.querySelector<HTMLLinkElement>('link[rel=manifest]')!.href)).json(),
  );
  assert.equal(manifest.display, 'standalone');
  await context.close();
});
