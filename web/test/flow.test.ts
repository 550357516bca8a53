// A workflow that is started and repeated from the browser: its graph, its passes, and what an agent of a step said.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, make } from './project';
import { entered, quiet, until } from './rig';

const files = {
  'pawl.yaml': `
agent: script
agents: {script: {command: [agent.yaml]}}
loop: {safety: permissive}
`,
  'agent.yaml': `
name: demo
turns:
  - - say: "I wrote the notes of the release."
    - run: "echo notes > notes"
`,
  'flow.yaml': `
name: flow
steps:
  - {id: build, run: "echo built"}
  - {id: lint, run: "exit 3", optional: true, needs: [build]}
  - {id: write, agent: script, prompt: "Write notes.", needs: [build]}
  - {id: check, run: "test -e second || { touch second; exit 1; }", needs: [write]}
`,
};

test('a workflow is repeated from the browser until its steps are done', async (t) => {
  const p = await make(process.env.PAWL ?? 'pawl', files);
  t.after(() => p.close());
  const context = await entered(p.url, 1280);
  const page = await context.newPage();
  const wrong = quiet(page);
  await page.goto(new URL('/runs', p.url).href);
  await page
    .getByRole('button', { name: /^Start a procedure/ })
    .first()
    .click();
  await page.getByLabel('When a step fails').selectOption('yes');
  await page.getByLabel('Iterations at most (optional)').fill('3');
  await page.keyboard.press('Control+Enter');
  await page.waitForURL(/\/runs\/\w+/);
  const steps = page.getByRole('region', { name: 'Steps' });
  await steps.getByRole('button', { name: /publish|check/ }).waitFor();
  const run = new URL(page.url()).pathname.split('/').at(-1)!;
  await until<{ status: string }>(page, `/api/v1/runs/${run}`, (r) => r.status === 'completed');
  await page.getByText('2 of 3').first().waitFor();
  await steps.getByRole('button', { name: /check done/ }).waitFor();
  // The optional step is red, and not what is shown first.
  await steps.getByRole('button', { name: /lint.*failed/ }).waitFor();
  assert.equal(await steps.getByRole('button', { pressed: true, name: /lint/ }).count(), 0);
  await steps.getByRole('button', { name: /write done/ }).click();
  await steps.getByText('I wrote the notes of the release.').waitFor();
  await page.reload();
  await steps.getByRole('button', { name: /write done/ }).click();
  await steps.getByText('I wrote the notes of the release.').waitFor();
  const list = (await api(page, `/api/v1/runs/${run}/steps`)) as { steps: { id: string; iteration: number }[] };
  assert.deepEqual(Object.fromEntries(list.steps.map((s) => [s.id, s.iteration])), {
    build: 1,
    lint: 1,
    write: 1,
    check: 2,
  });
  assert.deepEqual(wrong, []);

  await context.close();
});
