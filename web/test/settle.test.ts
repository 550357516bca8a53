// A conflict is settled in the browser, as a person does it who never opens a terminal.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { make, type Project } from './project';
import { api, entered, help, quiet, until, violations } from './rig';

const evil = '<script>alert(1)</script><img src=x onerror=alert(1)> \u202Egnp.exe';
const name = '<img src=x onerror=alert(1)>.txt';
const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `line ${from + i}`);

let own: Project;
let rests: Project;
after(() => Promise.all([own?.close(), rests?.close()]));

/** conflicts makes a task that conflicts with main in two places of one file, in one that main deleted, and in a line of 1 MB. */
function conflicts(p: Project): void {
  const put = (file: string, text: string) => writeFileSync(join(p.dir, file), text);
  const text = (a: string[], b: string[]) =>
    [...lines(1, 8), ...a, ...lines(10, 30), ...b, ...lines(32, 40)].join('\n') + '\n';
  const commit = () => (p.git(['add', '-A']), p.git(['commit', '-qm', 'change']));
  put(name, text(['old'], ['also old']));
  put('gone.txt', 'gone\n');
  put('wide.txt', 'x\n');
  commit();
  p.git(['switch', '-qc', 'mine']);
  put(name, text([evil, ...lines(100, 125)], ['the task']));
  put('gone.txt', 'changed\n');
  put('wide.txt', 'y'.repeat(1_000_000) + '\n');
  commit();
  p.git(['switch', '-q', 'main']);
  put(name, text(['of main'], ['main too']));
  p.git(['rm', '-q', 'gone.txt']);
  put('wide.txt', 'z\n');
  commit();
  p.run('case', 'add', `Settle ${evil}`);
  p.run('queue', 'add', 'task-001', '--commit', 'mine');
  p.run('queue', 'land');
  p.git(['branch', '-q', '-D', 'mine']);
}

test('a conflict is settled in the browser', async () => {
  own = await make(process.env.PAWL ?? 'pawl', {
    'pawl.yaml':
      'agent: script\nagents: {script: {command: [agent.yaml]}}\nverification: {commands: [{name: Tests, command: "true"}]}\n',
  });
  conflicts(own);
  const context = await entered(own.url, 1440);
  const page = await context.newPage();
  const wrong = quiet(page);
  const url = (path: string) => new URL(path, own.url).href;
  writeFileSync(join(own.dir, 'wide.txt'), 'of the user\n');

  // One key from what needs a person to both sides.
  await page.goto(url('/'));
  await page.getByText('Settle the conflict').waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Settle a conflict' }).waitFor();
  await page.goto(url('/queue'));
  await page.getByRole('option').first().click();
  await page.getByRole('link', { name: 'Settle the conflict' }).waitFor();
  await page.keyboard.press('e');
  const settle = page.getByRole('button', { name: /places to settle|Check it and land it/ });
  await settle.waitFor();
  assert.equal(await settle.innerText().then((t) => t.split('\n')[0]!.trim()), '4 of 4 places to settle');
  assert.deepEqual(await violations(page), []);
  const second = await context.newPage();
  await second.goto(page.url());
  await second
    .getByRole('group', { name: /^Place/ })
    .first()
    .waitFor();

  await page.keyboard.press('2'); // the first place: the task's lines
  await page.keyboard.press('j');
  await page.keyboard.press('3'); // both
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('2'); // the file that main deleted
  await page.keyboard.press('j');
  await page.keyboard.press('1');
  await page.keyboard.press('k');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('e');
  assert.equal(await page.getByRole('textbox').inputValue(), 'main too\nthe task');
  await page.getByRole('textbox').fill('settled by hand');
  assert.deepEqual(await violations(page), []);
  await page.getByRole('textbox').blur();
  await help(page);
  await page.keyboard.press('L');
  await page.getByRole('heading', { name: 'Merge queue' }).waitFor();
  await until<{ status: string }>(page, '/api/v1/cases/task-001', (c) => c.status === 'done');
  const landed = own.git(['show', `main:${name}`]);
  assert.ok(landed.includes(`${evil}\nline 100\n`) && landed.includes('line 30\nsettled by hand\nline 32'), landed);
  assert.equal(own.git(['show', 'main:gone.txt']), 'changed\n');
  assert.equal(own.git(['show', 'main:wide.txt']), 'z\n');
  assert.equal(readFileSync(join(own.dir, 'wide.txt'), 'utf8'), 'of the user\n');
  await page.getByText('task-001').first().waitFor();

  // The other tab has the conflict still: it settles nothing, and says so.
  for (const place of await second.getByRole('group', { name: /^Place/ }).all())
    await place.getByRole('button').first().click();
  await second.getByRole('button', { name: 'Check it and land it' }).click();
  await second.getByText('no conflict that waits for you').first().waitFor();
  assert.equal(
    ((await api(second, '/api/v1/queue')) as { queues: { entries: unknown[] }[] }).queues[0]!.entries.length,
    0,
  );
  await second.goto(url('/queue/task-001'));
  await second.getByText('no conflict that waits for you').first().waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('what a run did not deliver is settled, applied and discarded in the browser', async () => {
  const files = [name, 'agents.txt', 'both.txt', 'hand.txt', 'gone.txt'];
  const lines = { mine: '1\nmine\n3\n', agent: `1\nagent ${evil}\n3\n`, both: `1\nmine\nagent ${evil}\n3\n` };
  const all = files.map((f) => `'${f}'`).join(' ');
  rests = await make(process.env.PAWL ?? 'pawl', {
    'pawl.yaml': `
agent: script
agents: {script: {command: [agent.yaml]}}
loop: {max_iterations: 2, safety: permissive}
verification: {commands: [{name: Tests, command: "test ! -e bad"}]}
procedures:
  build: {act: [{content: scene-both}]}
  given: {max_iterations: 1, act: [{content: scene-red}]}
  taken: {max_iterations: 1, act: [{content: scene-red}]}
`,
    'agent.yaml': `
name: demo
scenes:
  - when: {prompt: scene-both}
    turns:
      - - run: sh both.sh
        - say: "Not yet."
      - - say: "<promise>COMPLETE</promise>"
  - when: {prompt: scene-red}
    turns:
      - - run: "echo 1 > bad; echo 1 > .envrc"
`,
    'both.sh': `for f in ${all}; do cp says "$f"; done; until test -e $HOME/go; do sleep 0.05; done`,
    says: lines.agent,
    ...Object.fromEntries(files.map((f) => [f, '1\n2\n3\n'])),
  });
  const put = (file: string, text: string) => writeFileSync(join(rests.dir, file), text);
  const has = (file: string) => existsSync(join(rests.dir, file));
  const read = (file: string) => readFileSync(join(rests.dir, file), 'utf8');
  const context = await entered(rests.url, 1440);
  const page = await context.newPage();
  const wrong = quiet(page);
  const url = (path: string) => new URL(path, rests.url).href;
  const open = async (name: string) => {
    const { runs } = (await api(page, '/api/v1/runs')) as { runs: { name: string; run: string }[] };
    await page.goto(url(`/runs/${runs.find((r) => r.name === name)!.run}`));
    await page.getByRole('heading', { name, exact: true }).waitFor();
  };

  // The person and the agent change the same lines.
  rests.begin('run', 'build', '-q');
  await page.goto(url('/'));
  await page.getByRole('article', { name: 'build' }).getByText('iteration 1').waitFor();
  for (const f of files) put(f, '1\nmine\n3\n');
  rmSync(join(rests.dir, 'gone.txt'));
  put('also.txt', 'mine\n');
  writeFileSync(join(rests.home, 'go'), '');
  await page.getByRole('button', { name: /build/, expanded: true }).waitFor();
  await page.getByRole('link', { name: /^See the run/ }).click();
  await page.getByRole('heading', { name: 'You and the agent both changed 5 files' }).waitFor();
  assert.deepEqual(await violations(page), []);
  await help(page);
  const file = (f: string) => page.getByRole('group', { name: f, exact: true });
  await file(name)
    .getByText(`agent ${evil.slice(0, 20)}`)
    .waitFor();
  const settled = (f: string) => file(f).getByText('settled').waitFor();
  await page.keyboard.press('1');
  await settled(name);
  await page.keyboard.press('2');
  await settled('agents.txt');
  await page.keyboard.press('3');
  await settled('both.txt');
  await file('gone.txt').getByText('you removed').waitFor();
  await file('gone.txt').getByRole('button', { name: 'Take the agent’s' }).click();
  await settled('gone.txt');
  assert.equal(read('agents.txt'), '1\nmine\n3\n');
  await page.keyboard.press('e');
  const text = page.getByLabel('Resulting text');
  assert.match(await text.inputValue(), /^1\n<+ mine\nmine\n/);
  assert.ok(await page.getByRole('button', { name: 'Remove the conflict markers first' }).isDisabled());
  await text.fill('by hand\n');
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', { name: 'Use this text' }).click();
  await settled('hand.txt');

  // What is settled can be chosen again until the run continues, also after a reload.
  await page.reload();
  await file('agents.txt').getByRole('button', { name: 'Choose again' }).click();
  await page.keyboard.press('1');
  await file('agents.txt').getByRole('button', { name: 'Choose again' }).waitFor();
  await file('agents.txt').getByRole('button', { name: 'Choose again' }).click();
  await page.keyboard.press('2');
  await file('agents.txt').getByRole('button', { name: 'Choose again' }).waitFor();
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press('r');
  await page.getByRole('heading', { name: /^You and the agent/ }).waitFor({ state: 'detached' });
  await page.locator('.badge', { hasText: 'completed' }).first().waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  assert.deepEqual(files.map(read), [lines.mine, lines.agent, lines.both, 'by hand\n', lines.agent]);
  assert.equal(read('also.txt'), 'mine\n');

  // Red work is given up, or taken as it is; what runs by itself is named first.
  for (const run of ['given', 'taken']) rests.run('run', run, '-q');
  assert.ok(!has('bad') && !has('.envrc'));
  await open('given');
  await page.getByRole('button', { name: /^Discard/ }).waitFor();
  await page.keyboard.press('D');
  await page
    .getByRole('dialog', { name: /Discard given/ })
    .getByRole('button', { name: 'Discard it' })
    .click();
  await page.getByRole('button', { name: /^Discard/ }).waitFor({ state: 'detached' });
  assert.equal(await page.getByRole('button', { name: /^Apply/ }).count(), 0);
  assert.ok(!has('bad') && !has('.envrc'));
  await open('taken');
  await page.getByRole('button', { name: /^Apply/ }).waitFor();
  await page.keyboard.press('a');
  const asked = page.getByRole('dialog', { name: /Apply the work of taken/ });
  await asked.getByText('runs by itself: .envrc').waitFor();
  await asked.getByText('Your own programs run some of these by themselves').waitFor();
  await asked.getByText('written: bad').waitFor();
  await asked.getByRole('button', { name: 'Apply it' }).click();
  await page.getByRole('button', { name: /^Apply/ }).waitFor({ state: 'detached' });
  assert.ok(has('bad') && has('.envrc'));
  assert.deepEqual(wrong, []);
  await context.close();
});
