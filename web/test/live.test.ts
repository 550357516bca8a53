// What stays, and what comes, while a page is open.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, viewer } from './rig';

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
