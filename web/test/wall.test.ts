// Agents side by side: what each says as it says it, and a message to one of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, at, help, quiet, runs, viewer, violations } from './rig';

test('agents are seen and written to side by side', async () => {
  const context = await viewer(1440, 'dark');
  const page = await context.newPage();
  const wrong = quiet(page);
  await page.goto(at('/'));
  await page.getByRole('link', { name: /^Side by side/ }).waitFor();
  await page.keyboard.press('W');
  const card = page.getByRole('article', { name: 'slow-import' });
  await card.getByText('The batch that holds the bad line fails now').waitFor();
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press('1');
  await page.keyboard.type('Mind <b>the</b> last line.');
  await page.keyboard.press('Enter');
  await card.getByText('Your message goes into its next prompt').waitFor();
  // The run may say that it has it before the answer to this page is here.
  await page.waitForFunction(
    (field) => (field as HTMLInputElement).value === '',
    await card.getByRole('textbox').elementHandle(),
  );
  const { asked } = (await api(page, `/api/v1/runs/${runs['slow-import']}`)) as { asked: { text: string }[] };
  assert.ok(
    asked.some((a) => a.text === 'Mind <b>the</b> last line.'),
    JSON.stringify(asked),
  );
  await page.setViewportSize({ width: 390, height: 800 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  assert.deepEqual(wrong, []);

  // Of more than six, six are shown at a time.
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.route('**/api/v1/overview*', async (route) => {
    const answer = await route.fetch();
    const o = (await answer.json()) as { active: { run: string; name: string; work?: string }[] };
    const [one] = o.active;
    await route.fulfill({
      response: answer,
      json: {
        ...o,
        active: Array.from({ length: 8 }, (_, i) => ({
          ...one,
          run: `${one!.run}${i}`,
          name: `agent ${i + 1}`,
          work: '',
        })),
      },
    });
  });
  await page.goto(at('/wall'));
  await page.getByRole('article', { name: 'agent 6' }).waitFor();
  assert.equal(await page.getByRole('article').count(), 6);
  for (const k of ['1', '2', '3', '4', '5', '6']) {
    await page.keyboard.press(k);
    assert.equal(
      await page.evaluate(() => document.activeElement!.getAttribute('aria-label')),
      `Message to agent ${k}`,
    );
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
  }
  await page.keyboard.press('j');
  await page.getByRole('article', { name: 'agent 8' }).waitFor();
  assert.equal(await page.getByRole('article').count(), 2);
  await page.keyboard.press('k');
  await page.getByRole('article', { name: 'agent 1' }).waitFor();
  await help(page);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await context.close();
});
