// The whole way of work in a browser, on a project of its own: a list becomes
// tasks, a sprint works on them, a question is answered, what is green is
// reviewed, and all of it lands.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { make } from './project';
import { entered, quiet } from './rig';

test('from a list of tasks to work that has landed', async () => {
  const own = await make(process.env.PAWL ?? 'pawl');
  const context = await entered(own.url, 1280);
  context.setDefaultTimeout(120_000);
  try {
    const page = await context.newPage();
    const wrong = quiet(page);
    const key = (k: string) => page.keyboard.press(k);
    await page.goto(own.url);
    await page.getByRole('heading', { name: 'Now', exact: true }).waitFor();

    // A list is pasted.
    await key('g');
    await key('b');
    await page.getByRole('button', { name: 'Import' }).first().click();
    await page
      .getByRole('textbox', { name: 'List' })
      .fill('- [ ] Choose a port. scene-port\n- [ ] Wait for the word. scene-held\n');
    await key('Control+Enter');
    await page.getByText('2 tasks are on the board').waitFor();

    // A sprint is started.
    await key('S');
    await page.getByRole('button', { name: /^Start the sprint/ }).waitFor();
    await key('4');
    await page.getByLabel('Verified work waits for one review of all at the end').check();
    await page.getByRole('button', { name: /^Start the sprint/ }).click();

    // Its agents are watched, and one of them asks.
    await key('g');
    await key('n');
    await page.getByText('Which port does the archive listen on?').first().waitFor();
    await page.getByRole('article', { name: 'task-002' }).waitFor();
    await page.getByLabel('Your answer in words').fill('It is port 8080.');
    await page.getByRole('button', { name: 'Answer', exact: true }).click();
    await page
      .getByRole('button', { name: /task-001: Choose a port/ })
      .filter({ hasText: 'review' })
      .waitFor();
    writeFileSync(join(own.home, 'word'), '');
    await page
      .getByRole('button', { name: /task-002: Wait for the word/ })
      .filter({ hasText: 'review' })
      .waitFor();

    // The batch is reviewed by key: seen, sent on.
    await key('g');
    await key('v');
    const rows = page.getByRole('listbox', { name: 'What waits for a review' });
    await rows.getByRole('option').nth(1).waitFor();
    await page
      .getByRole('region', { name: 'Changes' })
      .getByText(/^\+?(8080|held)$/)
      .first()
      .waitFor();
    await key('R');
    await page.getByRole('dialog').getByText('Tests incomplete').waitFor();
    await key('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await key('A');
    await page.getByText('1 of 2 open').waitFor();
    await key('A');
    await page.getByText('all decided').waitFor();

    // All of it lands.
    await key('g');
    await key('q');
    const landed = page.getByRole('region', { name: 'Last landed' });
    await page.getByRole('heading', { name: 'Merge queue' }).waitFor();
    // The sprint may still be there to land it; else the person does.
    const land = page.getByRole('button', { name: /^Land now/ });
    await land
      .or(landed.getByRole('link', { name: 'task-002' }))
      .first()
      .waitFor();
    if (await land.isVisible()) await key('L');
    await landed.getByRole('link', { name: 'task-001' }).waitFor();
    await landed.getByRole('link', { name: 'task-002' }).waitFor();
    await key('g');
    await key('b');
    const done = page.getByRole('listbox', { name: 'Done' });
    await done.getByRole('option', { name: /task-001/ }).waitFor();
    await done.getByRole('option', { name: /task-002/ }).waitFor();
    // What does not exist yet is a 404 that the browser logs.
    assert.deepEqual(
      wrong.filter((w) => !w.startsWith('Failed to load resource')),
      [],
    );
  } finally {
    await context.close();
    await own.close();
  }
});
