// What people do most, on a wide screen and on a phone: find out why work failed, answer, review, and see at once
// what came of it. On a project of its own, where tasks have ended in every way. What each story takes is counted, and
// docs/web.md says so.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { BrowserContext, Page } from 'playwright-core';
import { make, sums, type Project } from './project';
import { acts, api, dialogs, entered, quiet, tell, told, until, violations } from './rig';

const files = {
  'pawl.yaml': `
agent: script
agents: {script: {command: [agent.yaml]}, careful: {command: [agent.yaml], output: script}}
loop: {max_iterations: 2, safety: permissive}
autopilot: {max_parallel: 2, error_threshold: 0}
review: {mode: person}
merge: {conflict_retries: 0}
verification:
  commands: [{name: Unit tests, command: "sh checks/unit.sh"}]
`,
  'agent.yaml': `
name: demo
scenes:
  - when: {prompt: scene-port}
    turns:
      - - say: "<promise>PENDING: Which port does the archive listen on?</promise>"
  - when: {prompt: scene-red}
    turns:
      - - {write: {path: bad.txt, content: "1"}, say: "The sums are right now.\\n<promise>COMPLETE</promise>"}
        - usage: {input: 9000, output: 300, cost: 0.04}
      - - {write: {path: worse.txt, content: "1"}, say: "I looked again.\\n<promise>COMPLETE</promise>"}
        - usage: {input: 9000, output: 300, cost: 0.04}
turns:
  - - run: "mkdir -p src && sed -i 's/toFixed(2)/toFixed(digits(currency))/' src/money.ts && printf 'export function digits(currency: string) {\\\\n  return currency === \\"JPY\\" ? 0 : 2;\\\\n}\\\\n' > src/digits-$PAWL_CASE.ts"
    - usage: {input: 8000, output: 300, cost: 0.03}
    - say: "Amounts take their digits from the **currency**.\\n<promise>COMPLETE</promise>"
`,
  'checks/unit.sh': sums,
  'release.yaml': `
name: release
steps:
  - {id: build, run: "echo built {{context.version}}"}
  - {id: check, run: "echo looking for a token; echo no token >&2; exit 3", needs: [build]}
  - {id: publish, run: "echo published", needs: [check]}
`,
  'tasks.md': `
- [ ] Choose a port. scene-port
- [ ] Make the sums fit. scene-red
- [ ] Digits of yen
- [ ] Digits of dinars
- [ ] Digits of francs
- [ ] Digits of crowns
- [ ] Digits of pounds
- [ ] Digits of dollars
- [ ] Digits of pesos
`,
};

let own: Project;
let wide: BrowserContext;
let phone: BrowserContext;
/** begin makes the project for the first story that is told. */
async function begin(): Promise<void> {
  if (own) return;
  own = await make(process.env.PAWL ?? 'pawl', files);
  own.run('case', 'add', '-f', 'tasks.md');
  for (const [name, what] of [
    ['marks', 'Marks'],
    ['rubles', 'Rubles'],
  ])
    own.run(
      'case',
      'add',
      `Digits of ${name}`,
      '--description',
      `${what} are **old** money.`,
      '--acceptance',
      `${what} have two digits`,
    );
  own.run('case', 'add', 'Make the totals fit. scene-red');
  own.run('sprint', '--no-ready', '--max-iterations', '2', '-q');
  for (const which of [1, 2]) rival(which);
  own.run('queue', 'land');
  wide = await entered(own.url, 1440);
  phone = await entered(own.url, 390, 'dark');
}
/** rival queues a task whose one line is another one in main. */
function rival(which: number): void {
  const put = (text: string) => (
    writeFileSync(join(own.dir, `rates-${which}.txt`), text),
    own.git(['add', '-A']),
    own.git(['commit', '-qm', 'Rates'])
  );
  put('old\n');
  own.git(['switch', '-qc', 'rival']);
  put('of the task\n');
  own.git(['switch', '-q', 'main']);
  put('of main\n');
  const [id] = /task-\d+/.exec(own.run('case', 'add', `Settle the rates ${which}`))!;
  own.run('queue', 'add', id, '--commit', 'rival');
  own.git(['branch', '-q', '-D', 'rival']);
}
after(async () => {
  await wide?.close();
  await phone?.close();
  await own?.close();
});

const at = (path: string) => new URL(path, own.url).href;

/** story is told on both screens, and looked at by axe at its end; nothing may be logged. */
function story(name: string, tell: (page: Page, small: boolean) => Promise<void>): void {
  for (const small of [false, true]) {
    test(`${name}, ${small ? 390 : 1440} px`, async () => {
      await begin();
      const page = await (small ? phone : wide).newPage();
      const wrong = quiet(page);
      try {
        await tell(page, small);
        assert.deepEqual(await violations(page), []);
        await page.emulateMedia({ colorScheme: small ? 'light' : 'dark' });
        assert.deepEqual(await violations(page, true), []);
        assert.deepEqual(wrong, []);
        assert.ok(
          await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
          'the page is wider than the screen',
        );
      } finally {
        if (process.env.SHOTS)
          await page.screenshot({
            path: join(process.env.SHOTS, `${name.replace(/\W+/g, '-')}-${small ? 390 : 1440}.png`),
            fullPage: true,
          });
        await page.close();
      }
    });
  }
}

const received = (page: Page) => page.getByText('Received: "1.25"').first();

story('why did it fail: a click away, wherever a person is', async (page, small) => {
  // Wherever a failed task is listed, one click shows the lines that say why.
  for (const [path, row] of [
    ['/', page.getByRole('button', { name: /Make the sums fit/ })],
    ['/runs', page.getByRole('option', { name: /Make the sums fit/ })],
    ['/board', page.getByRole('option', { name: /task-002/ })],
    ['/board?view=groups', page.getByRole('option', { name: /task-002|Make the sums fit/ })],
  ] as const) {
    await page.goto(at(path));
    await row.waitFor();
    await acts(page);
    await row.click();
    await received(page).waitFor();
    await tell(page, 'Why did it fail, from a list', small);
    assert.equal(told.get('Why did it fail, from a list')![small ? 1 : 0], '1 click', path);
  }
  // On any other page the last failure is named.
  for (const path of ['/stats', '/config', '/queue', '/review', '/plan', '/wall', '/sprint']) {
    await page.goto(at(path));
    await page.locator('main h1, main h2').first().waitFor();
    await acts(page);
    const notice = page.getByRole('button', { name: /^(Failed|At its limit)/ });
    await notice.waitFor();
    if (small) await notice.click();
    else await page.keyboard.press('f');
    await received(page).waitFor();
    await tell(page, 'Why did it fail, from any page', small);
    assert.equal(told.get('Why did it fail, from any page')![small ? 1 : 0], small ? '1 click' : '1 key', path);
  }
});

story('why did it fail, by its title', async (page) => {
  await page.goto(at('/runs'));
  await page.getByRole('searchbox').fill('sums fit');
  const rows = page.getByRole('listbox', { name: 'Runs' }).getByRole('option');
  await page.waitForFunction(() => document.querySelectorAll('main [role=option]').length === 1);
  await rows.getByText('Make the sums fit').waitFor();
  await rows.first().click();
  await page.getByRole('heading', { name: 'Make the sums fit' }).waitFor();
  await page.getByText('1 of 47 failed', { exact: true }).waitFor();
  const excerpt = await page.locator('.excerpt').first().innerText();
  assert.match(excerpt, /"1.250"\nReceived/);
  await page.getByRole('main').getByRole('link', { name: 'task-002' }).click();
  await page.getByRole('dialog', { name: 'task-002' }).getByRole('heading', { name: 'History' }).waitFor();
});

story('no page says what to type in a terminal', async (page) => {
  await page.goto(at('/'));
  const runs = ((await api(page, '/api/v1/runs')) as { runs: { run: string }[] }).runs.map((r) => `/runs/${r.run}`);
  for (const path of ['/', '/now', '/board', '/runs', '/queue', '/review', '/sprint', '/stats', ...runs]) {
    await page.goto(at(path));
    await page.locator('main h1').first().waitFor();
    await page
      .getByText(/(Loading|Asking)[^.]*…/)
      .first()
      .waitFor({ state: 'detached' });
    assert.doesNotMatch(await page.locator('body').innerText(), /(^|\s)pawl [a-z]+/m, path);
  }
});

const before = 14;
let added = before;
story('a task with two needs, and the graph of them', async (page, small) => {
  await page.goto(at('/board'));
  await page.getByText(/^\d+ tasks$/).waitFor();
  await acts(page);
  if (small) await page.getByRole('button', { name: /^Add a task/ }).click();
  else await page.keyboard.press('n');
  const form = page.getByRole('dialog', { name: 'Add a task' });
  await form.getByLabel('What should be done?').fill('Print all currencies');
  const needs = form.getByLabel('Needs first');
  for (const words of ['yen', 'dinars']) {
    await needs.fill(words);
    await needs.press('Enter');
  }
  await form.getByRole('button', { name: 'Remove task-004' }).waitFor();
  await form.getByLabel('Priority').fill('2');
  await form.getByLabel(/^Agent/).selectOption('careful');
  if (small) await form.getByRole('button', { name: 'Add', exact: true }).click();
  else await page.keyboard.press('Control+Enter');
  await dialogs(page, 0);
  await tell(page, 'Add a task with two needs, a priority and an agent', small);
  const id = `task-0${++added}`;
  const c = (await api(page, `/api/v1/cases/${id}`)) as { needs: string[]; priority: number; tags: string[] };
  assert.deepEqual([c.needs, c.priority, c.tags], [['task-003', 'task-004'], 2, ['agent:careful']]);
  await page.getByRole('button', { name: 'By needs' }).click();
  const graph = page.getByRole('region', { name: 'Graph of needs' });
  await graph.getByRole('button', { name: /Digits of yen/ }).waitFor();
  assert.equal(await graph.locator('path').count(), 2 * (added - before));
  await graph
    .getByRole('button', { name: /Print all currencies/ })
    .first()
    .click();
  await page.getByRole('dialog').getByRole('link', { name: 'task-003: Digits of yen' }).waitFor();
});

test('a form that is quicker than the page has the agents too', async () => {
  await begin();
  const page = await wide.newPage();
  let go = (): void => undefined;
  const held = new Promise<void>((resolve) => (go = resolve));
  await page.route('**/api/v1/overview*', async (route) => (await held, await route.continue()));
  await page.goto(at('/board'));
  await page.getByText(/^\d+ tasks$/).waitFor();
  await page.keyboard.press('n');
  go();
  await page
    .getByRole('dialog', { name: 'Add a task' })
    .getByLabel(/^Agent/)
    .selectOption('careful');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.close();
});

test('a page that is left takes no answer any more', async () => {
  await begin();
  const page = await wide.newPage();
  const wrong = quiet(page);
  const move = (path: string) =>
    page.evaluate((to) => (history.pushState(null, '', to), dispatchEvent(new PopStateEvent('popstate'))), path);
  await page.goto(at('/stats'));
  await page.getByRole('heading', { name: 'Statistics' }).waitFor();
  const { runs } = (await api(page, '/api/v1/runs')) as { runs: { run: string }[] };
  const [a, b] = runs.map((r) => r.run);
  const pages: [string, RegExp][] = [
    ['/review', /cases\/task/],
    [`/compare?a=${a}&b=${b}`, /runs\//],
    [`/runs/${a}`, /runs\//],
    ['/board/task-002', /cases\/task-002/],
    ['/plan', /plan/],
    ['/queue', /queue/],
  ];
  for (const [path, what] of pages) {
    let go = (): void => undefined;
    const held = new Promise<void>((resolve) => (go = resolve));
    const asked: Promise<unknown>[] = [];
    await page.route(/api\/v1\/(cases|runs|reviews|queue|plan|sprints)/, async (route) => {
      const done = route.request().response();
      asked.push(done);
      await held;
      await route.continue();
      await done;
    });
    const first = page.waitForRequest((r) => r.url().includes('/api/v1/') && what.test(r.url()));
    await move(path);
    await first;
    await move('/stats');
    await page.getByRole('heading', { name: 'Statistics' }).waitFor();
    go();
    await Promise.all(asked);
    await page.unrouteAll({ behavior: 'wait' });
  }
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  assert.deepEqual(wrong, []);
  await page.close();
});

story('the panel says why it failed, and a retry takes a hint', async (page, small) => {
  const id = small ? 'task-012' : 'task-002';
  await page.goto(at(`/board/${id}`));
  const panel = page.getByRole('dialog', { name: id });
  await panel.getByRole('region', { name: 'The last failure' }).getByText('Received: "1.25"').waitFor();
  await panel.getByText('2 iterations').waitFor();
  await panel.getByText('$0.08').waitFor();
  await panel.getByRole('button', { name: 'Show the changes' }).click();
  await panel.getByRole('button', { name: /bad.txt/ }).waitFor();
  if (!small) {
    // A limit is no failure, on the board and in the list of what needs a person.
    await page.keyboard.press('Escape');
    await page
      .getByRole('listbox', { name: 'At a limit' })
      .getByRole('option', { name: /task-002/ })
      .waitFor();
    assert.equal(await page.getByRole('listbox', { name: 'Failed' }).getByRole('option').count(), 0);
    await page.goto(at('/'));
    await page.getByRole('button', { name: /at its limit.*Make the sums fit/ }).waitFor();
    await page.goto(at(`/board/${id}`));
  }
  const hint = panel.getByRole('button', { name: /^Retry with a hint/ });
  await hint.waitFor();
  await acts(page);
  if (small) await hint.click();
  else await page.keyboard.press('h');
  await page.getByLabel('What should the agent know this time?').fill('Dinars have three digits.');
  if (small) await page.getByRole('button', { name: 'Retry', exact: true }).last().click();
  else await page.keyboard.press('Control+Enter');
  await dialogs(page, 1);
  await tell(page, 'Try it again with a hint', small);
  await panel.getByText('Dinars have three digits.').first().waitFor();
});

story('a workflow is started, and the step that failed is read', async (page, small) => {
  await page.goto(at('/'));
  const start = page.getByRole('button', { name: /^Start a procedure/ }).first();
  await start.waitFor();
  await acts(page);
  if (small) await start.click();
  else await page.keyboard.press('n');
  await page.getByLabel('Procedure or workflow').selectOption('w release.yaml');
  await page.getByLabel('Input version').fill('2.4');
  if (small) await page.getByRole('button', { name: 'Start', exact: true }).click();
  else await page.keyboard.press('Control+Enter');
  const steps = page.getByRole('region', { name: 'Steps', exact: true });
  await steps.getByRole('heading', { name: 'check' }).waitFor();
  await steps.getByRole('region', { name: 'Output of the step' }).getByText('looking for a token').waitFor();
  await tell(page, 'Start a workflow, and read the step that failed', small);
  await steps.getByText(/attempt/).waitFor();
  await steps.getByRole('button', { name: /publish/ }).click();
  await steps.getByText('Waits for check.').waitFor();
  await steps.getByRole('button', { name: /^build/ }).click();
  await steps.getByText('built 2.4').waitFor();
});

story('a review: what was asked, both sides, comments on lines, and redo', async (page, small) => {
  const [who, id] = small ? ['Marks', 'task-010'] : ['Rubles', 'task-011'];
  const row = new RegExp(`Digits of ${who}`, 'i');
  await page.goto(at('/review'));
  await page.getByRole('option', { name: row }).click();
  const work = page.getByRole('region', { name: 'The chosen work' });
  for (const text of [
    `${who} have two digits`,
    `${who} are`,
    'What the agent said last',
    'Amounts take their digits from the',
  ])
    await work.getByText(text).waitFor();
  const diff = page.locator('.diff');
  await diff.locator('.p1', { hasText: 'return' }).first().waitFor(); // code has its colours
  if (!small) {
    await page.getByRole('button', { name: 'Side by side' }).click();
    const right = (await diff.locator('.two .code.added').first().boundingBox())!;
    assert.ok(right.x + right.width <= 1440 && right.width > 250 && right.height <= 24, JSON.stringify(right));
  }
  const comment = async (line: number, text: string) => {
    await diff
      .getByRole('button', { name: `Comment on line ${line}`, exact: true })
      .last()
      .click();
    await page.getByLabel('What must change here?').fill(text);
    if (small) await page.getByRole('button', { name: 'Keep the comment' }).click();
    else await page.keyboard.press('Control+Enter');
    await dialogs(page, 0);
  };
  await acts(page);
  await comment(32, 'Marks round up.');
  await work.getByRole('button', { name: /^Redo with 1 comment/ }).waitFor();
  await comment(2, 'Say why.');
  await work.getByRole('button', { name: /^Redo with 2 comments/ }).waitFor();
  // Both are there in another page and after a reload, and what was viewed stays folded.
  const other = await page.context().newPage();
  await other.goto(at('/review'));
  for (const again of [false, true]) {
    if (again) await other.reload();
    await other.getByRole('option', { name: row }).click();
    await other.getByRole('button', { name: /^Redo with 2 comments/ }).waitFor();
    if (!again) await other.getByLabel('Viewed src/money.ts').check();
    await other.getByText('1 of 2 viewed').waitFor();
  }
  await other.close();
  if (small) await work.getByRole('button', { name: /^Redo with 2 comments/ }).click();
  else await page.keyboard.press('R');
  assert.equal(
    // Under each comment is the line that it is about.
    (await page.getByLabel('What must change?').inputValue()).replace(/\n> .*/g, ''),
    `src/money.ts:32: Marks round up.\nsrc/digits-${id}.ts:2: Say why.`,
  );
  if (small) await page.getByRole('dialog').getByRole('button', { name: /^Redo/ }).click();
  else await page.keyboard.press('Control+Enter');
  await dialogs(page, 0);
  await tell(page, 'Comment on two lines, and send it back', small);
  await page.getByRole('option', { name: new RegExp(`Digits of ${who}.*sent back`, 'i') }).waitFor();
  const { history } = (await api(page, `/api/v1/cases/${id}`)) as { history: { why: string }[] };
  assert.match(history.at(-1)!.why, /src\/money.ts:32: Marks round up/);
});

test('what was decided shows at once, and as what it was', async () => {
  await begin();
  const page = await wide.newPage();
  const wrong = quiet(page);
  // An answer is gone from the inbox, and the run says what it waits for.
  await page.goto(at('/'));
  const entry = (name: RegExp) => page.getByRole('button', { name }).and(page.locator('[aria-expanded]'));
  await entry(/7 tasks wait for your review/).waitFor();
  await entry(/task-001: Choose a port/).click();
  await page.getByLabel('Your answer in words').fill('8080');
  await page.getByRole('button', { name: 'Answer', exact: true }).click();
  await entry(/task-001/).waitFor({ state: 'detached' });
  await page.goto(at('/runs?q=choose'));
  await page.getByRole('option', { name: /waits for a slot/ }).click();
  await page.getByText('Answered: it continues when a slot is free.').waitFor();

  // Three are approved with five keys, one is rejected.
  await acts(page);
  for (const key of ['g', 'v']) await page.keyboard.press(key);
  await page.getByText('7 of 7 open').waitFor();
  const approve = async (left: string) => {
    await page.keyboard.press('A');
    await page.getByText(left).waitFor();
  };
  for (const left of ['6 of 7 open', '5 of 7 open', '4 of 7 open']) await approve(left);
  await tell(page, 'Approve three reviews', false);
  await page.keyboard.press('X');
  await page.getByLabel('What must change?').fill('Crowns have no digits.');
  await page.keyboard.press('Control+Enter');
  await dialogs(page, 0);
  await page.getByText('3 of 7 open').waitFor();
  const rows = page.getByRole('listbox', { name: 'What waits for a review' });
  assert.equal(await rows.getByText(/, approved/).count(), 3);
  await rows.getByText(/, rejected/).waitFor();
  assert.equal(await rows.locator('.bad').innerText(), '✗');
  assert.deepEqual(wrong, []);
  await page.close();
});

test('three are approved on a phone', async () => {
  const page = await phone.newPage();
  await page.goto(at('/'));
  const link = page.getByRole('navigation').getByRole('link', { name: /^Review/ });
  await link.waitFor();
  await acts(page);
  await link.click();
  for (const left of ['2 of 3 open', '1 of 3 open', 'all decided']) {
    await page.getByRole('button', { name: /^Approve/ }).click();
    await page.getByText(left).waitFor();
  }
  await tell(page, 'Approve three reviews', true);
  await page.close();
});

story('a conflict is settled', async (page, small) => {
  await page.goto(at('/queue'));
  await page.getByRole('link', { name: /^Settle the conflict/ }).waitFor();
  await acts(page);
  if (small) {
    await page.getByRole('link', { name: /^Settle the conflict/ }).click();
    await page.getByRole('button', { name: /^Lines of the task/ }).click();
    await page.getByRole('button', { name: /^Check it and land it/ }).click();
  } else {
    await page.keyboard.press('e');
    await page.getByText('1 of 1 place to settle').waitFor();
    for (const key of ['2', 'L']) await page.keyboard.press(key);
  }
  await page.getByRole('heading', { name: 'Merge queue' }).waitFor();
  await tell(page, 'Settle a conflict', small);
  await until<{ status: string }>(page, `/api/v1/cases/task-0${small ? 14 : 13}`, (c) => c.status === 'done');
  assert.equal(own.git(['show', `main:rates-${small ? 2 : 1}.txt`]), 'of the task\n');
});

story('two iterations are compared', async (page, small) => {
  await page.goto(at('/'));
  const { runs } = (await api(page, '/api/v1/runs')) as { runs: { run: string; name: string }[] };
  await page.goto(at(`/runs/${runs.find((r) => r.name === 'task-002')!.run}`));
  const compare = page.getByRole('link', { name: /^Compare/ });
  await compare.waitFor();
  await acts(page);
  if (small) await compare.click();
  else await page.keyboard.press('c');
  await page.getByText('What differs in the files after iteration 2 from those after iteration 1.').waitFor();
  await page.locator('.diff').getByText('worse.txt').first().waitFor();
  await tell(page, 'Compare two iterations', small);
});

test('three agents are seen at once', async () => {
  const three = await make(process.env.PAWL ?? 'pawl', {
    'pawl.yaml':
      'agent: script\nagents: {script: {command: [agent.yaml]}}\nloop: {safety: permissive}\nautopilot: {max_parallel: 3}\n',
    'three.md': ['prices', 'stocks', 'orders'].map((what) => `- [ ] Sort the ${what}\n`).join(''),
    'agent.yaml': 'turns:\n  - - say: "I work on $PAWL_CASE."\n    - sleep: 3600s\n',
  });
  try {
    three.run('case', 'add', '-f', 'three.md');
    three.begin('autopilot', '-q');
    for (const small of [false, true]) {
      const context = await entered(three.url, small ? 390 : 1440, small ? 'dark' : 'light');
      const page = await context.newPage();
      const wrong = quiet(page);
      await page.goto(three.url);
      for (const what of ['prices', 'stocks', 'orders'])
        await page.getByRole('heading', { name: `Sort the ${what}` }).waitFor();
      await acts(page);
      if (small) await page.getByRole('link', { name: /^Side by side/ }).click();
      else await page.keyboard.press('W');
      for (const what of ['prices', 'stocks', 'orders'])
        await page
          .getByRole('log', { name: `Conversation of Sort the ${what}` })
          .getByText(/^I work on/)
          .waitFor();
      await tell(page, 'See three agents at once', small);
      const cards = await page
        .getByRole('article')
        .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().top));
      if (!small) assert.equal(new Set(cards).size, 1, 'they stand in one line');
      assert.deepEqual(await violations(page), []);
      await page.emulateMedia({ colorScheme: small ? 'light' : 'dark' });
      assert.deepEqual(await violations(page, true), []);
      assert.deepEqual(wrong, []);
      await context.close();
    }
  } finally {
    await three.close();
  }
});

test('docs/web.md says what each story takes', () => {
  const rows =
    readFileSync('../docs/web.md', 'utf8')
      .split('\n## How many steps things take\n')[1]
      ?.split('\n## ')[0]
      ?.split('\n')
      .filter((l) => /^\| [A-Z]/.test(l)) ?? [];
  const counted = [...told].map(([story, [screen, tap]]) => `| ${story} | ${screen} | ${tap} |`);
  assert.deepEqual(rows, counted, `what was counted is\n${counted.join('\n')}`);
});
