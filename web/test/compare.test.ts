// Two iterations, and two runs, side by side.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, help, quiet, runs, viewer, violations } from './rig';

test('two iterations and two runs are compared', async () => {
  const context = await viewer(1440);
  const page = await context.newPage();
  const wrong = quiet(page);
  const one = runs['currency-format']!;
  const other = runs['retry-webhooks']!;
  await page.goto(at(`/runs/${one}`));
  await page.getByRole('link', { name: /^Compare/ }).waitFor();
  await page.keyboard.press('c');
  await page.getByText('What differs in the files after iteration 2 from those after iteration 1.').waitFor();
  const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name}`) });
  assert.match(await row('Cost').innerText(), /\$0\.08\s+less\s+\$0\.09/);
  assert.match(await row('Checks').innerText(), /✗\s*Unit Tests\s+failed[\s\S]*✓\s*Unit Tests\s+passed/);
  await page.getByText('KWD: 3').first().waitFor();
  assert.deepEqual(await violations(page), []);

  await page.keyboard.press('x');
  await page.getByText('What differs in the files after iteration 1 from those after iteration 2.').waitFor();
  await page.keyboard.press('p');
  await page.getByRole('region', { name: 'Right side' }).getByText('Format amounts').first().waitFor();
  await page.keyboard.press('d');
  // Another side is chosen, and the address says so: it can be sent to somebody.
  await page.getByRole('combobox', { name: 'Left side' }).selectOption({ label: 'The whole run' });
  await page.waitForFunction((id) => new URLSearchParams(location.search).get('a') === id, one);
  await page
    .getByRole('region', { name: 'Left side' })
    .getByRole('button', { name: /decimals.ts/ })
    .first()
    .waitFor();
  await help(page);

  await page.goto(at(`/compare?a=${one}&b=${other}`));
  assert.match(await row('Iterations').innerText(), /2\s+2/);
  await page
    .getByRole('region', { name: 'Right side' })
    .getByRole('button', { name: /retry.ts/ })
    .first()
    .waitFor();
  await page.setViewportSize({ width: 390, height: 800 });
  assert.deepEqual(await violations(page), []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  assert.deepEqual(wrong, []);
  for (const odd of ['', '?a=&b=', '?a=none&b=none', `?a=${one}.99&b=${one}.x`, '?a=<script>&b=../..']) {
    await page.goto(at(`/compare${odd}`));
    await page
      .getByRole('alert')
      .or(page.getByRole('row', { name: /^Outcome/ }))
      .first()
      .waitFor();
  }
  await context.close();
});
