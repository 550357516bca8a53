// Other repositories of the same user: what waits there is seen from here, and a click leads there.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { make } from './project';
import { dialogs, entered, quiet, violations } from './rig';

const evil = '<img src=x onerror=alert(1)>';

test('other repositories are seen and opened from one browser', async (t) => {
  const own = await make(process.env.PAWL ?? 'pawl');
  t.after(() => own.close());
  const name = `archive ${evil}`;
  const dir = join(own.home, name);
  mkdirSync(dir);
  own.git(['init', '-q', '-b', 'main', dir]);
  writeFileSync(join(dir, 'pawl.yaml'), 'agent: script\nserver: {address: "127.0.0.1:0"}\n');
  const there = (...args: string[]) => own.run('-C', dir, ...args);
  there('case', 'add', `Move it ${evil}`);
  there('case', 'block', 'task-001', '--why', 'no room');
  const here = (path: string) => new URL(path, own.url).href;

  const context = await entered(own.url, 1440);
  t.after(() => context.close());
  const page = await context.newPage();
  const wrong = quiet(page);
  await page.goto(here('/'));
  const others = page.getByRole('region', { name: 'Other repositories' });
  await others.getByRole('button', { name: /^archive.*not open$/ }).waitFor();
  assert.deepEqual(await violations(page), []);

  // A part of its name opens it, by a server of its own.
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('open archive');
  await page.getByRole('option', { name: /^Open archive/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.origin !== new URL(own.url).origin);
  await page.getByRole('button', { name: /task-001: Move it/, expanded: true }).waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  assert.ok(!page.url().includes('key'), page.url());
  await others.getByRole('button', { name: /^ledger.*nothing waits$/ }).waitFor();

  // What waits there is in the list here, and goes when it is done there.
  const second = await context.newPage();
  wrong.push(...quiet(second));
  await second.goto(here('/'));
  const list = second.getByRole('region', { name: 'Other repositories' });
  await list.getByRole('button', { name: /^archive.*1 thing needs you$/ }).waitFor();
  await list.getByRole('button', { name: /blocked archive.*task-001: Move it.*no room/ }).waitFor();
  await second.keyboard.press('g');
  await second.keyboard.press('c');
  await second.getByRole('link', { name: /^Other repositories need you archive.*\(1\)/ }).click();
  for (const [width, scheme] of [
    [390, 'dark'],
    [1440, 'light'],
  ] as const) {
    await second.setViewportSize({ width, height: 860 });
    await second.emulateMedia({ colorScheme: scheme });
    assert.deepEqual(await violations(second), []);
    assert.ok(
      await second.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
      'the page is wider than the screen',
    );
  }
  await list.getByRole('button', { name: /task-001: Move it/ }).click();
  await second.waitForURL((url) => url.pathname === '/board/task-001');
  await second.getByRole('dialog', { name: 'task-001' }).getByRole('heading', { name: 'History' }).waitFor();
  await second.goto(here('/'));
  await list.getByRole('button', { name: /task-001: Move it/ }).waitFor();
  there('case', 'unblock', 'task-001');
  await list.getByRole('button', { name: /^archive.*nothing waits$/ }).waitFor();
  await list.getByRole('button', { name: /task-001/ }).waitFor({ state: 'detached' });
  assert.equal(await second.evaluate(() => document.querySelectorAll('main img, main script').length), 0);
  await dialogs(second, 0);
  assert.deepEqual(wrong, []);

  // Its server ends with the one that started it.
  await page.close();
  await own.restart(() => assert.match(there('serve', '--url'), /no server runs/));
  await list.getByRole('button', { name: /^archive.*not open$/ }).waitFor();
});
