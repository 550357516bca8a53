// From a goal to tasks on the board, without a terminal.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { make, type Project } from './project';
import { entered, help, quiet, violations } from './rig';

const evil = '<img src=x onerror=alert(1)>';
const proposed = [
  { ref: 'tabs', title: `Accept tabs ${evil}`, description: evil, acceptance: ['a test has a tab'] },
  { ref: 'docs', title: 'Describe tabs', acceptance: ['the manual says it'], needs: ['tabs'] },
  { ref: 'extra', title: 'Something else', acceptance: ['it is there'], needs: ['docs'] },
];
const list = proposed.map((t) => JSON.stringify(t)).join('\n') + '\n';

let own: Project;
let empty: Project;
after(() => Promise.all([own?.close(), empty?.close()]));

test('an agent proposes tasks, and a person changes and adds them', async () => {
  own = await make(process.env.PAWL ?? 'pawl', {
    'pawl.yaml':
      'agent: script\nagents: {script: {command: [agent.yaml]}}\nloop: {safety: permissive}\nverification: {commands: [{name: Tests, command: "true"}]}\n',
    'agent.yaml': `turns:\n  - - write: {path: pawl-plan.jsonl, content: ${JSON.stringify(list)}}\n    - say: "<promise>COMPLETE</promise>"\n`,
  });
  const file = join(own.dir, 'pawl-plan.jsonl');
  const context = await entered(own.url, 1440);
  const page = await context.newPage();
  const wrong = quiet(page);
  const url = (path: string) => new URL(path, own.url).href;

  // Two keys to the page, one to the question.
  await page.goto(url('/board'));
  await page.getByRole('heading', { name: 'Board', exact: true }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('p');
  await page.getByRole('heading', { name: 'From a goal to tasks' }).waitFor();
  assert.deepEqual(await violations(page), []);
  await help(page);
  await page.keyboard.press('n');
  const ask = page.getByRole('dialog', { name: 'Plan a goal' });
  await ask.getByLabel('What is the goal?').fill('--yes the parser accepts tabs');
  await ask.getByRole('button', { name: 'Start' }).click();

  // The tasks are there when the agent has ended, and what waits for what.
  await page.getByText('3 tasks proposed').waitFor();
  await page.getByRole('region', { name: 'Dependencies' }).waitFor();
  await page.getByRole('heading', { name: 'Accept tabs' }).waitFor();
  assert.deepEqual(await violations(page), []);
  await page.emulateMedia({ colorScheme: 'dark' });
  assert.deepEqual(await violations(page, true), []);
  await page.setViewportSize({ width: 390, height: 844 });
  assert.ok(
    (await page.evaluate(() => document.documentElement.scrollWidth)) <= 390,
    'the page is wider than its window',
  );
  assert.deepEqual(await violations(page), []);
  await page.setViewportSize({ width: 1440, height: 900 });

  await help(page);
  await page.keyboard.press('x');
  await page.getByRole('dialog', { name: 'Discard the proposed tasks?' }).waitFor();
  await page.keyboard.press('Escape');

  // One is changed, one left out, one more added.
  await page.getByRole('button', { name: 'Edit docs' }).click();
  const edit = page.getByRole('dialog', { name: 'Edit docs' });
  await edit.getByLabel('What should be done?').fill('Describe tabs in the manual');
  await edit.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Describe tabs in the manual' }).waitFor();
  await page.getByRole('button', { name: 'Remove extra' }).click();
  await page.getByText('2 tasks proposed').waitFor();
  await page.keyboard.press('m');
  const more = page.getByRole('dialog', { name: 'One more task' });
  await more.getByLabel('What should be done?').fill('Release it');
  await more.getByLabel('Done when').fill('a tag is there');
  await more.getByRole('button', { name: 'Add it to the list' }).click();
  await page.getByText('3 tasks proposed').waitFor();
  assert.equal(readFileSync(file, 'utf8').trim().split('\n').length, 3);

  // A list that changed meanwhile is not added unseen.
  writeFileSync(file, list);
  await page.keyboard.press('a');
  await page.getByText('the list was changed in the meantime').first().waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Something else' }).waitFor();
  wrong.length = 0; // the refusal is in the console, as each answer of 400 and more is
  await page.keyboard.press('a');
  await page.getByRole('heading', { name: 'Board', exact: true }).waitFor();
  await page.getByText('Describe tabs').first().waitFor();
  assert.ok(!existsSync(file), 'the list is still there');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a run that proposes no tasks is named, with its reason', async () => {
  empty = await make(process.env.PAWL ?? 'pawl', {
    'pawl.yaml':
      'agent: script\nagents: {script: {command: [agent.yaml]}}\nloop: {max_iterations: 1, safety: permissive}\n',
    'agent.yaml': 'turns:\n  - - say: "I found nothing to do."\n',
  });
  const context = await entered(empty.url, 1280);
  const page = await context.newPage();
  const wrong = quiet(page);
  await page.goto(new URL('/plan', empty.url).href);
  await page.getByRole('button', { name: /^Plan a goal/ }).click();
  const ask = page.getByRole('dialog', { name: 'Plan a goal' });
  await ask.getByLabel('What is the goal?').fill('the parser accepts tabs');
  await ask.getByRole('button', { name: 'Start' }).click();
  const said = page.getByText('The last run proposed no tasks');
  await said.waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByText('there is no pawl-plan.jsonl').waitFor();
  await said.getByRole('link', { name: /the parser accepts tabs/ }).click();
  await page.waitForURL(/\/runs\//);
  assert.deepEqual(wrong, []);
  await context.close();
});
