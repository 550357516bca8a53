// What becomes of the autopilot and its sprint when the server ends, is killed, and is started again.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { api, make } from './project';
import { entered, until } from './rig';

const files = {
  'pawl.yaml': `
agent: script
agents: {script: {command: [agent.yaml]}}
loop: {safety: permissive}
autopilot: {max_parallel: 1}
`,
  'agent.yaml': `
name: demo
turns:
  - - run: "touch $HOME/began-$PAWL_CASE; until test -e $HOME/go; do sleep 0.1; done; echo done > done-$PAWL_CASE"
    - say: "<promise>COMPLETE</promise>"
`,
};
interface Pilot {
  running: boolean;
  pid: number;
  next?: { held?: string };
}
const began = async (home: string) => {
  for (let tries = 0; !existsSync(join(home, 'began-task-001')); tries++) {
    assert.ok(tries < 600, 'no agent began');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

test('a sprint that ended with the server goes on by one click', async (t) => {
  const p = await make(process.env.PAWL ?? 'pawl', files);
  t.after(() => p.close());
  p.run('case', 'add', 'First');
  p.run('case', 'add', 'Second');
  p.run('case', 'add', 'Third');
  const context = await entered(p.url, 1280);
  const page = await context.newPage();
  await page.goto(new URL('/sprint', p.url).href);
  await page.getByRole('radio', { name: /Complete a number of tasks/ }).check();
  await page.getByLabel('Tasks', { exact: true }).fill('2');
  await page.getByRole('button', { name: /^Start the sprint/ }).click();
  await began(p.home);
  await page.goto(new URL('/board', p.url).href);
  await page.getByText('Autopilot works').waitFor();
  await p.restart(() => writeFileSync(join(p.home, 'go'), ''));
  const bar = page.getByRole('region', { name: 'State of the autopilot' });
  await bar.getByText('The sprint was cut off').waitFor();
  await page.reload();
  await bar.getByRole('button', { name: 'Continue the sprint' }).click();
  await until<{ cases: { status: string }[] }>(
    page,
    '/api/v1/cases?type=task',
    (a) => a.cases.filter((c) => c.status === 'done').length === 2,
  );
  const pilot = await until<Pilot>(page, '/api/v1/autopilot', (a) => !a.running && !a.next);
  assert.equal(pilot.running, false);
  await bar.getByRole('button', { name: 'Continue the sprint' }).waitFor({ state: 'detached' });
  await context.close();
});

test('an autopilot goes on when its server is killed, and the next server has it', async (t) => {
  const p = await make(process.env.PAWL ?? 'pawl', files);
  t.after(() => p.close());
  p.run('case', 'add', 'First');
  const context = await entered(p.url, 1280);
  const page = await context.newPage();
  await page.goto(new URL('/board', p.url).href);
  const bar = page.getByRole('region', { name: 'State of the autopilot' });
  await bar.getByRole('button', { name: 'Start' }).click();
  await bar.getByText('Autopilot works').waitFor();
  const { pid } = (await api(page, '/api/v1/autopilot')) as Pilot;
  await began(p.home);
  process.kill(p.pid(), 'SIGKILL');
  await p.restart(() => undefined);
  await page.reload();
  await bar.getByText('Autopilot works').waitFor();
  assert.equal(((await api(page, '/api/v1/autopilot')) as Pilot).pid, pid, 'it is another one');
  writeFileSync(join(p.home, 'go'), '');
  await until<{ status: string }>(page, '/api/v1/cases/task-001', (c) => c.status === 'done');
  const runs = (await api(page, '/api/v1/runs')) as { runs: unknown[] };
  assert.equal(runs.runs.length, 1, 'the agent was begun twice');
  await context.close();
});

test('an autopilot that is killed with its server works again when the server is back', async (t) => {
  const p = await make(process.env.PAWL ?? 'pawl', files);
  t.after(() => p.close());
  p.run('case', 'add', 'First');
  const context = await entered(p.url, 1280);
  const page = await context.newPage();
  await page.goto(new URL('/board', p.url).href);
  const bar = page.getByRole('region', { name: 'State of the autopilot' });
  await bar.getByRole('button', { name: 'Start' }).click();
  await bar.getByText('Autopilot works').waitFor();
  const { pid } = (await api(page, '/api/v1/autopilot')) as Pilot;
  await began(p.home);
  process.kill(p.pid(), 'SIGKILL');
  process.kill(pid, 'SIGKILL');
  await p.restart(() => undefined);
  await page.reload();
  await bar.getByText('It was cut off, and works again.').waitFor();
  assert.notEqual(((await api(page, '/api/v1/autopilot')) as Pilot).pid, pid);
  writeFileSync(join(p.home, 'go'), '');
  await until<{ status: string }>(page, '/api/v1/cases/task-001', (c) => c.status === 'done');
  await context.close();
});

test('an autopilot that ended with its server works again, and one that a person paused or stopped does not', async (t) => {
  const p = await make(process.env.PAWL ?? 'pawl', files);
  t.after(() => p.close());
  p.run('case', 'add', 'First');
  const context = await entered(p.url, 1280);
  const page = await context.newPage();
  await page.goto(new URL('/board', p.url).href);
  const bar = page.getByRole('region', { name: 'State of the autopilot' });
  await bar.getByRole('button', { name: 'Start' }).click();
  await bar.getByText('Autopilot works').waitFor();
  await began(p.home);
  await p.restart(() => undefined);
  await bar.getByText('It was cut off, and works again.').waitFor();
  await bar.getByRole('button', { name: 'Pause' }).click();
  await bar.getByText('Autopilot paused').waitFor();
  await p.restart(() => undefined);
  await bar.getByText('It was cut off, and waits for you: it was paused.').waitFor();
  await bar.getByRole('button', { name: 'Start' }).click();
  await bar.getByText('Autopilot works').waitFor();
  p.run('autopilot', 'stop');
  p.run('case', 'add', 'Second');
  await page.evaluate(() =>
    fetch('/api/v1/sprints/next', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Pawl-Key': localStorage.getItem('pawl.key') ?? '' },
      body: '{"count":"1"}',
    }),
  );
  await p.restart(() => undefined);
  await page.reload();
  await bar.getByText('The sprint before it was stopped').waitFor(); // so the server has looked at what is to work
  await bar.getByText('Autopilot is off').waitFor();
  assert.equal(((await api(page, '/api/v1/autopilot')) as Pilot).running, false);
  await context.close();
});

test('a page whose token was changed says so, and takes the new address', async (t) => {
  const p = await make(process.env.PAWL ?? 'pawl', files);
  t.after(() => p.close());
  const context = await entered(p.url, 1280);
  const page = await context.newPage();
  await page.goto(new URL('/board', p.url).href);
  await page.getByText('Live').waitFor();
  await p.restart(() => {
    const file = join(p.state, 'pawl');
    const [dir] = readdirSync(file).filter((name) => existsSync(join(file, name, 'serve', 'session.json')));
    rmSync(join(file, dir!, 'serve', 'session.json'));
  });
  await page.getByText('This session has ended').waitFor();
  const address = p.run('serve', '--url').trim();
  await page.getByLabel(/The address that/).fill(address);
  await page.getByRole('button', { name: 'Open it' }).click();
  await page.getByText('Live').waitFor();
  await page.getByText('This session has ended').waitFor({ state: 'detached' });
  await context.close();
});
