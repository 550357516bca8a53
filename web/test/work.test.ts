// What a person does while agents work, on a project of its own: every action by
// its key, with what comes of it, and texts of others that are hostile.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { make, type Project } from './project';
import { api, dialogs, entered, happened, help, quiet, until } from './rig';

const evil = '<script>alert(1)</script><img src=x onerror=alert(1)>';

const files = {
  'pawl.yaml': `
agent: script
agents: {script: {command: [agent.yaml]}}
loop: {max_iterations: 2, safety: permissive}
autopilot: {max_parallel: 4, error_threshold: 0}
review: {mode: person}
verification:
  commands: [{name: "Unit <b>Tests</b>", command: "sh checks/unit.sh"}]
procedures:
  alpha: {max_iterations: 8, act: [{content: scene-steps}]}
  beta: {max_iterations: 8, act: [{content: scene-steps}]}
  gamma: {max_iterations: 8, act: [{content: scene-steps}]}
  totals: {act: [{content: scene-easy}]}
  sums: {max_iterations: 8, act: [{content: scene-easy}]}
  dispute: {policy: controlled, summary: "${evil}", act: [{content: scene-red}]}
`,
  'release.yaml': `
steps:
  - {id: place, ask: "Where to? ${evil}"}
  - {id: name, ask: "Which name?"}
  - {id: tag, run: "echo {{name.output}} {{place.output}}", needs: [place, name]}
`,
  'agent.yaml': `
name: demo
scenes:
  - when: {prompt: scene-steps}
    turns:
      - - run: "mkdir -p src && echo one > src/$PAWL_RUN-1; until test -e $HOME/go-$PAWL_RUN-1; do sleep 0.05; done"
        - say: "The first part."
      - - run: "echo two > src/$PAWL_RUN-2; until test -e $HOME/go-$PAWL_RUN-2; do sleep 0.05; done"
        - say: "The second part."
      - - run: "until test -e $HOME/go-$PAWL_RUN-3; do sleep 0.05; done"
  - when: {prompt: scene-key}
    turns:
      - {say: "I cannot. ${evil}", exit: 1}
  - when: {prompt: scene-long}
    turns:
      - {write: {path: long/a, content: "1"}, say: "Not yet."}
      - {write: {path: long/b, content: "1"}, say: "Not yet."}
      - {write: {path: "long/$PAWL_CASE", content: "1"}, say: "Done.\\n<promise>COMPLETE</promise>"}
  - when: {prompt: scene-held}
    turns:
      - - run: "until test -e $HOME/word; do sleep 0.05; done"
  - when: {prompt: scene-red}
    turns:
      - - {write: {path: bad.txt, content: "1"}, say: "${evil}\\n<promise>COMPLETE</promise>"}
turns:
  - - run: "mkdir -p src && echo $PAWL_CASE > \\"src/<img src=x onerror=alert(1)> $PAWL_CASE.html\\""
    - say: "${evil} **done**\\n<promise>COMPLETE</promise>"
`,
  'checks/unit.sh': String.raw`
printf '\033]0;owned\007\033[31mred\033[0m \033[2J\033[10;10Hmoved \b\007\n10%%\r20%%\r100%%\n'
if [ ! -e bad.txt ]; then echo "Tests: 3 passed, 3 total"; exit 0; fi
echo 'FAIL src/<script>alert(1)</script>.test.ts'
echo '  ● <img src=x onerror=alert(1)> adds'
echo '    Expected: "<b>3</b>"'
echo '    Received: "<i>4</i>"'
echo '      at Object.<anonymous> (src/<script>.test.ts:41:34)'
echo 'Tests: 1 failed, 2 passed, 3 total'
exit 1
`,
  'tasks.md': `
- [ ] Sign in ${evil} scene-key
  tags: a<b>c</b>, login
- [ ] Sign out. scene-key
- [ ] A long way. scene-long
- [ ] A longer way. scene-long
- [ ] Easy ${evil} scene-easy
- [ ] Easy too. scene-easy
- [ ] Easy as well. scene-easy
- [ ] Sign off. scene-key
- [ ] Sign up. scene-key
- [ ] Wait for the word. scene-held
- [ ] Wait as well. scene-held
`,
  'queue.md': Array.from({ length: 12 }, (_, i) => `- [ ] Queued ${i} ${evil}\n`).join(''),
};

let own: Project;
after(() => own?.close());

test('actions by key, while agents work', async (t) => {
  own = await make(process.env.PAWL ?? 'pawl', files);
  const context = await entered(own.url, 1280);
  const page = await context.newPage();
  const wrong = quiet(page);
  const key = (k: string) => page.keyboard.press(k);
  const go = (path: string) => page.goto(new URL(path, own.url).href);
  const dialog = page.getByRole('dialog');
  const shut = () => dialogs(page, 0);
  /** press presses a key whose button is there, so that it does something. */
  const press = async (k: string, button: RegExp) => {
    await page.getByRole('button', { name: button }).first().waitFor();
    await key(k);
  };
  /** answered does something that asks the server for an action, and waits until that is done. */
  const answered = (action: () => Promise<unknown>) =>
    Promise.all([page.waitForResponse((r) => r.request().method() !== 'GET' && r.ok()), action()]);
  const sure = async (title: RegExp, loses: RegExp, yes: string) => {
    const asked = page.getByRole('dialog', { name: title });
    await asked.getByText(loses).waitFor();
    await answered(() => asked.getByRole('button', { name: yes }).click());
    await asked.waitFor({ state: 'detached' });
  };
  const column = (name: string, id: string) =>
    page.getByRole('listbox', { name, exact: true }).getByRole('option', { name: new RegExp(id) });
  const status = (id: string, want: string) =>
    until<{ status: string }>(page, `/api/v1/cases/${id}`, (c) => c.status === want);
  /** heard waits for the nth event of a kind in a run's journal. */
  const heard = (run: string, kind: string, n: number) => happened(page, run, kind, n);
  const began = async (name: string) => {
    own.begin('run', name, '-q');
    await go('/');
    await page.getByRole('article', { name, exact: true }).getByText('iteration 1').waitFor();
    return ((await api(page, '/api/v1/runs')) as { runs: { name: string; run: string }[] }).runs.find(
      (r) => r.name === name,
    )!.run;
  };
  const release = (run: string, n: number) => writeFileSync(join(own.home, `go-${run}-${n}`), '');
  const has = (run: string, n: number) => existsSync(join(own.dir, 'src', `${run}-${n}`));

  const step = (name: string, work: () => Promise<void>) =>
    t.test(name, async () => {
      try {
        await work();
      } catch (error) {
        if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `${name.slice(0, 20)}.png`) });
        throw error;
      }
    });

  await step('a run: paused, resumed, stopped, rolled back, and back again', async () => {
    const run = await began('alpha');
    await go(`/runs/${run}`);
    await press('Space', /^Pause/);
    await heard(run, 'pause.asked', 1);
    release(run, 1);
    await press('Space', /^Resume/);
    await page.getByRole('heading', { name: 'Iteration 2' }).waitFor();
    await press('Space', /^Pause/);
    await heard(run, 'pause.asked', 2);
    release(run, 2);
    await press('r', /^Resume/);
    await page.getByRole('heading', { name: 'Iteration 3' }).waitFor();
    await press('x', /^Stop/);
    await sure(/Stop alpha/, /since its last answer is lost; files that it changed are kept/, 'Stop the run');
    await page.getByRole('button', { name: /^Resume/ }).waitFor();
    assert.ok(has(run, 1) && has(run, 2));
    await page.getByRole('option', { name: /^2/ }).click();
    await page.getByRole('heading', { name: 'Iteration 2' }).waitFor();
    await key('ArrowDown');
    await page.getByRole('heading', { name: 'Iteration 3' }).waitFor();
    await key('ArrowUp');
    await page.getByRole('heading', { name: 'Iteration 2' }).waitFor();
    await press('R', /^Roll back to before it/);
    await sure(
      /Roll back to after iteration 1/,
      /1 file changes.*A snapshot .* is taken first, so that the rollback can be undone\..*gone: src\/\w+-2/s,
      'Roll back',
    );
    await page.getByRole('button', { name: /^Undo rollback/ }).waitFor();
    assert.ok(has(run, 1) && !has(run, 2));
    await answered(() => key('u'));
    assert.ok(has(run, 1) && has(run, 2));
  });

  await step('a run in the list: paused, resumed, raised, told, stopped, rolled back', async () => {
    const run = await began('beta');
    await go('/runs');
    const row = page.getByRole('option', { name: /beta/ });
    await row.waitFor();
    await key('j');
    await page.getByRole('option', { name: /beta/, selected: true }).waitFor();
    await key('ArrowDown');
    await page.getByRole('option', { name: /alpha/, selected: true }).waitFor();
    await key('ArrowUp');
    await key('j');
    await key('k');
    await page.getByRole('option', { name: /beta/, selected: true }).waitFor();
    await key('m');
    await dialog.getByRole('textbox', { name: 'Message' }).fill(evil);
    await key('Control+Enter');
    await page.getByText('The message goes into the next prompt').waitFor();
    await shut();
    await key('+');
    await dialog.getByLabel(/^Iterations at most/).fill('12');
    await key('Enter');
    await shut();
    await row.getByText('1 / 12').waitFor();
    await key('Space');
    await heard(run, 'pause.asked', 1);
    release(run, 1);
    await row.locator('.badge', { hasText: 'paused' }).waitFor();
    await key('Space');
    await row.getByText('2 / 12').waitFor();
    release(run, 2);
    await row.getByText('3 / 12').waitFor();
    await key('x');
    await sure(/Stop beta/, /is lost/, 'Stop the run');
    await heard(run, 'finished', 1);
    await row.locator('.badge', { hasText: /interrupted|stopped/ }).waitFor();
    await key('R');
    await sure(/Roll back to before the run/, /2 files change.*gone: src\/\w+-1.*gone: src\/\w+-2/s, 'Roll back');
    assert.ok(!has(run, 1) && !has(run, 2));
    await key('Enter');
    await page.waitForURL(`**/runs/${run}`);
  });

  await step('the one agent on the first page: paused, resumed, stopped', async () => {
    const run = await began('gamma');
    await key('Space');
    await heard(run, 'pause.asked', 1);
    release(run, 1);
    const entry = page.getByRole('button', { name: /gamma/, expanded: true });
    await page.getByRole('button', { name: /gamma/ }).filter({ hasText: 'paused' }).click();
    await entry.waitFor();
    await key('r');
    await page.getByRole('article', { name: 'gamma' }).getByText('iteration 2').waitFor();
    await key('x');
    await sure(/Stop gamma/, /is lost/, 'Stop the run');
    await page.getByText('No agent is running').waitFor();
  });

  await step('what needs a person, of every kind, is in one list and answered there', async () => {
    for (const name of ['totals', 'sums', 'dispute', 'release.yaml']) own.run('run', name, '-q');
    await go('/');
    const entry = (name: RegExp) => page.getByRole('button', { name }).and(page.locator('[aria-expanded]'));
    for (const name of [/dispute/, /release: place/, /release: name/, /totals/, /sums/]) await entry(name).waitFor();
    // Two questions of one run are two entries; each is answered alone.
    await entry(/release: name/).click();
    await key('w');
    await page.keyboard.type('otter');
    await key('Control+Enter');
    await entry(/release: name/).waitFor({ state: 'detached' });
    // The options have numbers; one that takes words asks for them first.
    await entry(/dispute/).click();
    await page.getByText('Which is right?').waitFor();
    await help(page);
    await key('3');
    await page.waitForFunction(() => document.activeElement instanceof HTMLTextAreaElement);
    await page.keyboard.type('5');
    assert.equal(await page.getByLabel('Your answer in words').inputValue(), '5');
    await page.getByLabel('Your answer in words').fill('');
    await entry(/totals/).click();
    await entry(/dispute/).click();
    // Red work waits in the workspace of its run; none of it is among the person's files.
    const { runs } = (await api(page, '/api/v1/runs')) as { runs: { name: string; run: string }[] };
    const disputed = `/api/v1/runs/${runs.find((r) => r.name === 'dispute')!.run}`;
    const changed = ((await api(page, `${disputed}/diff`)) as { files: { path: string }[] }).files.map((f) => f.path);
    assert.deepEqual(changed, ['bad.txt']);
    const waits = async () => ((await api(page, disputed)) as { actions: string[] }).actions.includes('apply');
    assert.ok((await waits()) && !existsSync(join(own.dir, 'bad.txt')));
    for (const n of ['1', '2', '4']) assert.equal(await page.locator('ol kbd', { hasText: n }).count(), 1);
    await answered(() => key('5'));
    await page.getByText('given up by a person').first().waitFor();
    assert.ok(!(await waits()) && !existsSync(join(own.dir, 'bad.txt')), 'what was given up waits no more');
    // Reviews of runs: one is approved, the other sent back with words.
    await entry(/totals/).click();
    await help(page);
    await key('A');
    await entry(/totals/).waitFor({ state: 'detached' });
    await entry(/sums/).click();
    await key('X');
    await page.waitForFunction(() => document.activeElement instanceof HTMLTextAreaElement);
    await page.keyboard.type('Add them up first.');
    await key('Control+Enter');
    type Entry = { title: string; kind: string; run?: { iteration: number } };
    await until<{ entries: Entry[] }>(page, '/api/v1/inbox', (a) =>
      a.entries.some((e) => e.title === 'sums' && e.kind === 'review' && e.run!.iteration === 2),
    );
  });

  await step('the board: started, tried again, extended, rolled back, cleaned, approved', async () => {
    own.run('case', 'add', '-f', 'tasks.md');
    const pilot = own.begin('autopilot', '--keep', '--semi-auto', '--max-iterations', '2', '-q');
    await until<{ running: boolean }>(page, '/api/v1/autopilot', (a) => a.running);
    await go('/board');
    const choose = async (id: string) => {
      await page.getByRole('option', { name: new RegExp(id) }).click();
      await page.getByRole('dialog', { name: id }).getByRole('heading', { name: 'History' }).waitFor();
      await key('Escape');
      await shut();
    };
    // Around the board, and what is done with a case there.
    await choose('task-011');
    const waits = (name: string) =>
      page.getByRole('listbox', { name, exact: true }).getByRole('option', { selected: true });
    await key('ArrowUp');
    await waits('Pending').filter({ hasText: 'task-010' }).waitFor();
    await key('ArrowDown');
    await waits('Pending').filter({ hasText: 'task-011' }).waitFor();
    await key('b');
    await page.getByLabel('What must happen first?').fill('Swap sides');
    await key('Control+Enter');
    await shut();
    await column('Blocked', 'task-011').waitFor();
    await key('ArrowLeft');
    await waits('Pending').waitFor();
    await key('ArrowRight');
    await waits('Blocked').waitFor();
    await key('h');
    await waits('Pending').waitFor();
    await key('l');
    await waits('Blocked').waitFor();
    await key('u');
    await column('Pending', 'task-011').waitFor();
    await key('d');
    await column('Deferred', 'task-011').waitFor();
    await key('d');
    await column('Pending', 'task-011').waitFor();
    await key('e');
    await page.getByLabel('Priority').fill('-1');
    await key('Enter');
    await shut();
    await column('Pending', 'task-011').getByText('P−1').waitFor();
    for (const n of [1, 2, 3, 4, 5, 6, 7, 8]) {
      await choose(`task-00${n}`);
      await key('s');
      await page.getByText(`task-00${n} gets the next free slot`).waitFor();
    }
    await column('At a limit', 'task-001').waitFor();
    await choose('task-001');
    await key('X');
    await sure(
      /Remove the workspace of task-001/,
      /ignored files, such as caches and build results, are lost/,
      'Remove the workspace',
    );
    await page
      .getByText(/task-001 +removed|removed/)
      .first()
      .waitFor();
    await key('r');
    await column('Pending', 'task-001').waitFor();
    await column('At a limit', 'task-002').waitFor();
    await choose('task-002');
    await key('R');
    await sure(/Roll task-002 back/, /removed from its workspace. A snapshot is kept/, 'Roll back');
    await column('Pending', 'task-002').waitFor();
    await column('At a limit', 'task-003').waitFor();
    await choose('task-003');
    await key('+');
    await dialog.getByLabel('Iterations in all').fill('4');
    await key('Enter');
    await shut();
    await column('Pending', 'task-003').waitFor();
    await column('Review', 'task-005').waitFor();
    await choose('task-005');
    await key('A');
    await column('Done', 'task-005').waitFor();

    // A batch of reviews is gone through; what comes meanwhile is taken in when the person says so.
    await status('task-006', 'review');
    await status('task-007', 'review');
    await go('/review');
    const batch = page.getByRole('listbox', { name: 'What waits for a review' }).getByRole('option');
    await batch.nth(1).waitFor();
    const many = await batch.count();
    for (const [k, i] of [
      ['j', 1],
      ['k', 0],
      ['ArrowDown', 1],
      ['ArrowUp', 0],
      ['N', 1],
      ['P', 0],
      ['2', 1],
      ['1', 0],
    ] as const) {
      await key(k);
      await page.waitForFunction(
        (i) => document.querySelectorAll('main [role=option]')[i]?.getAttribute('aria-selected') === 'true',
        i,
      );
    }
    own.run('case', 'start', 'task-003');
    await page.getByRole('button', { name: /^Take in 1 new one/ }).waitFor();
    assert.equal(await batch.count(), many);
    await key('Escape');
    await batch.nth(many).waitFor();

    // The panel of a case has the same, and some more.
    const panel = async (id: string) => {
      await go(`/board/${id}`);
      await page.getByRole('dialog', { name: id }).getByRole('heading', { name: 'History' }).waitFor();
    };
    await panel('task-004');
    await help(page);
    await status('task-004', 'timeout');
    await press('+', /^More iterations/);
    await page.getByLabel('Iterations in all').fill('5');
    await key('Enter');
    await dialogs(page, 1);
    await status('task-004', 'pending');
    await panel('task-008');
    await press('X', /^Clean/);
    const asked = page.getByRole('dialog', { name: /Remove the workspace of task-008/ });
    await asked.waitFor();
    await key('e'); // of the panel behind the question
    await key('b');
    assert.equal(await page.getByRole('dialog').count(), 2);
    await sure(/Remove the workspace of task-008/, /are lost/, 'Remove the workspace');
    await page
      .getByText(/removed/)
      .first()
      .waitFor();
    await press('r', /^Retry/);
    await status('task-008', 'pending');
    await panel('task-009');
    await press('s', /^Start/);
    await status('task-009', 'timeout');
    await press('R', /^Roll back/);
    await sure(/Roll task-009 back/, /A snapshot is kept/, 'Roll back');
    await status('task-009', 'pending');
    await panel('task-006');
    await press('o', /^Redo/);
    await page.getByRole('button', { name: /^Tests incomplete/ }).waitFor();
    await key('Alt+1');
    await key('Alt+3');
    assert.equal(await page.getByLabel('What must change?').inputValue(), 'Tests incomplete\nMissing error handling');
    await key('Control+Enter');
    await dialogs(page, 1);
    await status('task-006', 'pending');
    await press('s', /^Start/);
    await status('task-006', 'review');
    await press('J', /^Reject/);
    await page.getByLabel('What must change?').fill(evil);
    await key('Control+Enter');
    await dialogs(page, 1);
    await status('task-006', 'blocked');
    await panel('task-007');
    await press('A', /^Approve/);
    await status('task-007', 'done');

    // An agent at work is redirected: another task gets its slot.
    await panel('task-010');
    await press('s', /^Start/);
    await status('task-010', 'active');
    await page
      .getByRole('dialog')
      .getByRole('link', { name: /^[0-9a-z]{8}$/ })
      .first()
      .click();
    await press('r', /^Give slot away/);
    await page.getByLabel('Work on this instead').selectOption('task-011');
    await sure(
      /Give the slot of task-010.* to another task/,
      /since its last answer is lost; files that it changed are kept, and task-010 is pending again/,
      'Give it away',
    );
    await status('task-011', 'active');
    await status('task-010', 'pending');
    own.run('autopilot', 'stop');
    await new Promise<void>((resolve) => (pilot.exitCode !== null ? resolve() : pilot.once('exit', () => resolve())));
  });

  await step('a sprint: chosen, started, paused, resumed, stopped', async () => {
    for (const id of [1, 2, 3, 4, 8, 9]) own.run('case', 'defer', `task-00${id}`);
    await go('/sprint');
    await page.getByRole('button', { name: /^Start the sprint/ }).waitFor();
    for (const [k, label] of [
      ['1', 'Complete a number'],
      ['2', 'Run for some hours'],
      ['3', 'Run until a time'],
      ['4', 'Until no task'],
    ] as const) {
      await key(k);
      await page.waitForFunction((label) => document.querySelector('.chosen')?.textContent?.includes(label), label);
    }
    // Only some tasks, by label and operation: the forecast follows.
    await page.getByLabel('Only tasks with').fill('in:op-999');
    await page.getByText('No task of these is ready').waitFor();
    await page.getByLabel('Only tasks with').fill('-#login');
    await page.getByText(/^About/).waitFor();
    await page.getByLabel('Only tasks with').blur();
    await key('Enter');
    await page.getByRole('region', { name: 'Progress' }).waitFor();
    await page.getByRole('heading', { name: 'Wait for the word' }).waitFor();
    await press('Space', /^Pause/);
    await press('Space', /^Resume/);
    await page.getByRole('button', { name: /^Pause/ }).waitFor();
    // It can be asked on every other page, too.
    const bar = page.getByRole('region', { name: 'State of the autopilot' });
    await key('g');
    await key('b');
    await bar.getByText('Autopilot works').waitFor();
    await bar.getByLabel('slots').fill('5');
    await bar.getByLabel('slots').press('Enter');
    await bar.getByText('of 5 slots in use').waitFor();
    await bar.getByRole('button', { name: 'Pause' }).click();
    await bar.getByText('Autopilot paused').waitFor();
    await bar.getByRole('button', { name: 'Resume' }).waitFor();
    await key('g');
    await key('a');
    await bar.getByText('Autopilot works').waitFor();
    await key('g');
    await key('x');
    const stopping = page.getByRole('dialog', { name: /Stop the autopilot/ });
    await stopping.waitFor();
    await key('Escape');
    await stopping.waitFor({ state: 'detached' });
    await key('S');
    await page.getByRole('button', { name: /^Pause/ }).waitFor();
    // The next one is planned while this one runs, changed, and dropped; after a stop it waits for a person.
    const next = page.getByRole('region', { name: 'The next sprint' });
    await press('p', /^Plan the next/);
    await page.getByLabel('Only tasks with').fill('#later');
    await page.getByLabel('Only tasks with').blur();
    await key('1');
    await key('Enter');
    await next.getByText('10 tasks, #later').waitFor();
    await press('d', /^Drop/);
    await next.waitFor({ state: 'detached' });
    await press('p', /^Plan the next/);
    await key('4');
    await key('Enter');
    await next.getByText('until no task is ready, #later').waitFor();
    await press('x', /^Stop/);
    await sure(/Stop the autopilot/, /what they said since their last answer is lost/, 'Stop it');
    await page.getByRole('button', { name: /^Start the sprint/ }).waitFor();
    await next.getByText('was stopped').waitFor();
    assert.equal(await page.getByLabel('Only tasks with').inputValue(), '#later');
    await key('d');
    await next.waitFor({ state: 'detached' });
    await status('task-010', 'pending');
  });

  await step('a queue of twelve: held, released, dropped, landed, and tried again', async () => {
    const first = 12;
    const branches = Array.from({ length: 12 }, (_, i) => `q${i}${i === 3 ? '<b>' : ''}`);
    own.run('case', 'add', '-f', 'queue.md');
    const base = own.git(['rev-parse', 'main']).trim();
    // The fifth changes what the sixth deletes: that is for a person.
    const change = (i: number) =>
      i === 5 ? 'D src/money.ts' : `M 100644 inline ${i === 4 ? 'src/money.ts' : `queued/<i>${i}.txt`}\ndata 1\n1`;
    own.git(
      ['fast-import', '--quiet'],
      branches
        .map(
          (b, i) =>
            `commit refs/heads/${b}\ncommitter T <t@example.com> 1700000000 +0000\ndata 1\nx\nfrom ${base}\n${change(i)}\n\n`,
        )
        .join(''),
    );
    branches.forEach((b, i) => own.run('queue', 'add', `task-0${first + i}`, '--commit', b));
    await go('/queue');
    await page.getByText('12 entries for').waitFor();
    const list = page.getByRole('listbox', { name: 'Entries of the queue' });
    const row = (id: number) => list.getByRole('option', { name: new RegExp(`task-0${id}`) });
    await key('Space');
    await dialog.getByLabel(/^Why/).fill(evil);
    await key('Enter');
    await shut();
    await page.getByText('The queue is blocked').waitFor();
    await key('Space');
    await page.getByText('The queue is blocked').waitFor({ state: 'detached' });
    for (const k of ['j', 'ArrowDown', 'k', 'ArrowUp']) await key(k);
    await list.getByRole('option', { name: /task-012/, selected: true }).waitFor();
    await key('h');
    await dialog.getByLabel(/^Why/).fill('Not today');
    await key('Enter');
    await shut();
    await row(12).getByText('held').waitFor();
    await row(12).getByText('Not today').waitFor();
    await key('h');
    await row(12).getByText('waiting').waitFor();
    await row(13).click();
    await key('X');
    await sure(/Drop task-013/, /does not land. Its place in the queue is lost; its work is kept/, 'Drop it');
    await row(13).waitFor({ state: 'detached' });
    await row(14).click();
    await key('Enter');
    await page.waitForURL('**/board/task-014*');
    await go('/queue');
    await row(14).waitFor();
    await key('L');
    await row(17).getByText('needs you').waitFor();
    await page.getByText('1 entry for').waitFor();
    // A conflict is in the inbox, says where it is, and can be tried again there.
    await go('/');
    const conflict = page.getByRole('button', { name: /task-017/ }).and(page.locator('[aria-expanded]'));
    await conflict.filter({ hasText: 'conflict' }).click();
    await page.getByText('Both sides changed src/money.ts').waitFor();
    await answered(() => press('r', /^Try again/));
    await conflict.waitFor({ state: 'detached' });
    await go('/queue');
    await row(17).getByText('waiting').waitFor();
    await key('L');
    await row(17).getByText('needs you').waitFor();
    await row(17).click();
    await page.getByRole('region', { name: 'The chosen entry' }).getByText('src/money.ts').first().waitFor();
    await page.getByRole('button', { name: /^Try again/ }).waitFor();
    await answered(() => key('r'));
    await row(17).getByText('waiting').waitFor();
    assert.equal(own.git(['cat-file', '-p', 'main:src/money.ts']), '1');
    const landed = (
      (await api(page, '/api/v1/queue')) as { queues: { landed: { task: string }[] }[] }
    ).queues[0]!.landed.map((l) => l.task);
    for (const i of [12, 14, 15, 16, 18, 19, 20, 21, 22, 23])
      assert.ok(landed.includes(`task-0${i}`), landed.join(' '));
  });

  await step('nothing of all these texts is more than text', async () => {
    const runs = ((await api(page, '/api/v1/runs')) as { runs: { name: string; run: string }[] }).runs;
    const dispute = runs.find((r) => r.name === 'dispute')!.run;
    const paths = [
      '/',
      '/board',
      '/board?view=groups',
      '/board/task-001',
      '/board/task-005',
      '/board/task-006',
      '/runs',
      '/queue',
      '/review',
      '/sprint',
      '/stats',
      '/config?all=1',
      `/runs/${dispute}`,
      `/runs/${dispute}?show=changes`,
      `/runs/${dispute}?show=log`,
      `/runs/${runs.find((r) => r.name === 'task-005')!.run}?show=changes`,
    ];
    for (const path of paths) {
      await go(path);
      await page.getByText('Live', { exact: true }).waitFor();
      await page
        .getByText(/Loading|Asking|Reading|Comparing/)
        .first()
        .waitFor({ state: 'detached' });
      assert.equal(
        await page.evaluate(() => document.querySelectorAll('body script, body img, [onerror]').length),
        0,
        path,
      );
      assert.ok(!(await page.title()).includes('owned'));
    }
    // What a check printed: colours are kept, what moves the cursor or speaks to the terminal is not.
    await go(`/runs/${dispute}`);
    await page.getByRole('button', { name: 'Unit <b>Tests</b>' }).click();
    const log = page.locator('[role=region][aria-label^="gate-"]');
    await log.locator('.a-red', { hasText: 'red' }).waitFor();
    const said = (await log.textContent())!;
    assert.match(said, /100%/);
    assert.doesNotMatch(said, /[\u0000-\u0008\u000b-\u001f]|owned|10%|20%|\[2J/);
    assert.match(said, /FAIL src\/<script>alert\(1\)<\/script>/);
    assert.deepEqual(
      wrong.filter((w) => !w.startsWith('Failed to load resource')),
      [],
    );
  });
  await context.close();
});
