// A conflict is settled in the browser, as a person does it who never opens a terminal.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { make, type Project } from './project';
import { api, entered, help, quiet, until, violations } from './rig';

const evil = '<script>alert(1)</script><img src=x onerror=alert(1)> \u202Egnp.exe';
const name = '<img src=x onerror=alert(1)>.txt';
const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `line ${from + i}`);

let own: Project;
after(() => own?.close());

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
