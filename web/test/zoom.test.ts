// At 200 % a window has half as much room: the bars take at most a tenth of it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, viewer, violations } from './rig';

for (const [name, width, height] of [
  ['1440 by 900', 720, 450],
  ['1920 by 1080', 960, 540],
] as const) {
  test(`a window of ${name} at 200 % is nearly all page`, async () => {
    const context = await viewer(width);
    const page = await context.newPage();
    await page.setViewportSize({ width, height });
    await page.goto(at('/runs'));
    await page.getByText('currency-format').first().waitFor();
    const bar = (await page.getByRole('navigation', { name: 'Pages' }).boundingBox())!;
    const share = (bar.width * bar.height) / (width * height);
    assert.ok(share <= 0.1, `the bar takes ${share} of the window`);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
    // It still says what needs a person, and where everything is.
    await page.getByRole('link', { name: /^Now \d+ wait for you/ }).click();
    await page.getByRole('heading', { name: 'Needs you' }).waitFor();
    assert.deepEqual(await violations(page), []);
    await context.close();
  });
}
