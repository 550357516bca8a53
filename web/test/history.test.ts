// What landed, lost a race or was thrown away is still seen when its workspaces are gone: each tab of each run.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, make } from './project';
import { entered, quiet } from './rig';

const files = {
  'pawl.yaml': `
agent: script
agents: {script: {command: [agent.yaml]}}
loop: {safety: permissive}
procedures: {ask: {act: [{content: scene-stuck}]}}
`,
  'agent.yaml': `
name: demo
scenes:
  - when: {prompt: scene-stuck}
    turns:
      - - run: "echo stuck > made"
        - say: "I went as far as I can.\\n<promise>BLOCKED: a person must look</promise>"
turns:
  - - run: "echo $PAWL_RUN > made"
    - say: "I went as far as I can.\\n<promise>COMPLETE</promise>"
`,
};

test('landed, lost and discarded work is seen when its workspaces are gone', async (t) => {
  const p = await make(process.env.PAWL ?? 'pawl', files);
  t.after(() => p.close());
  p.run('case', 'add', 'Two race', '--tag', 'race:2', '--tag', 'pick:best');
  p.run('case', 'add', 'Stuck scene-stuck');
  p.run('case', 'add', 'Thrown away scene-stuck');
  p.run('autopilot', '-q');
  p.run('case', 'clean', 'task-001', 'task-002', 'task-003');
  p.run('case', 'rm', 'task-003');
  p.run('run', 'ask', '-q');
  p.run('discard', 'ask');
  p.git(['clean', '-fdq']);
  p.git(['gc', '--quiet', '--prune=now']);
  const context = await entered(p.url, 1280);
  const page = await context.newPage();
  const said = quiet(page);
  await page.goto(p.url);
  const { runs } = (await api(page, '/api/v1/runs')) as { runs: { run: string; name: string }[] };
  assert.deepEqual(
    runs.map((r) => r.name).sort(),
    ['ask', 'task-001', 'task-001-race2', 'task-002', 'task-003'],
    'a run is not listed any more',
  );
  for (const r of runs) {
    await page.goto(new URL(`/runs/${r.run}/1`, p.url).href);
    await page.keyboard.press('o');
    await page.getByText('I went as far as I can.').first().waitFor();
    await page.keyboard.press('d');
    await page.getByText('made', { exact: true }).first().waitFor();
    await page.keyboard.press('p');
    await page
      .getByText(/promise/)
      .first()
      .waitFor();
    await page.keyboard.press('l');
    await page
      .getByText(/I went as far/)
      .first()
      .waitFor();
  }
  const ids = runs.filter((r) => r.name.startsWith('task-001')).map((r) => r.run);
  await page.goto(new URL(`/compare?a=${ids[0]}&b=${ids[1]}`, p.url).href);
  await page.getByText('made', { exact: true }).first().waitFor();
  for (const id of ['task-001', 'task-002']) {
    await page.goto(new URL(`/board/${id}`, p.url).href);
    await page.getByRole('button', { name: 'Show the changes' }).click();
    await page.getByText('made', { exact: true }).first().waitFor();
  }
  assert.deepEqual(said, []);
  await context.close();
});
