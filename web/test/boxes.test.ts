// Nothing is outside of the window, over something else or cut off without a sign, from a small phone to a wide
// screen, with texts that are long, have no blank or read from right to left. At 200 % a window has half the width.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { faults } from './boxes';
import { api, make, sums, type Project } from './project';
import { entered, quiet } from './rig';

const endless = (words: string) => words + 'x'.repeat(200 - words.length);
const hebrew = 'בדוק את הסכומים של החשבוניות לפני סוף הרבעון ושלח אותם לכולם';

const files = {
  'pawl.yaml': `
agent: script
agents: {script: {command: [agent.yaml]}, ${endless('an-agent-').slice(0, 60)}: {command: [agent.yaml], output: script}}
loop: {max_iterations: 2, safety: permissive}
autopilot: {max_parallel: 2, error_threshold: 0}
review: {mode: person}
verification:
  commands:
    - {name: Unit tests, command: "sh checks/unit.sh"}
    - {name: ${endless('Linting-of-').slice(0, 64)}, command: "true", required: false}
procedures:
  nightly: {summary: ${endless('nightly-')}, act: [{content: "Look. scene-port"}]}
`,
  'agent.yaml': `
name: demo
scenes:
  - when: {prompt: scene-port}
    turns:
      - - say: "<promise>PENDING: ${endless('Which-port-')}?</promise>"
  - when: {prompt: scene-blocked}
    turns:
      - - say: "<promise>BLOCKED: ${endless('the-registry-')}</promise>"
  - when: {prompt: scene-red}
    turns:
      - - {write: {path: bad.txt, content: "1"}, say: "${endless('The-sums-')}\\n<promise>COMPLETE</promise>"}
      - - {write: {path: worse.txt, content: "1"}, say: "Again.\\n<promise>COMPLETE</promise>"}
  - when: {prompt: scene-slow}
    turns:
      - - say: "${endless('Customers-')}"
        - tool: {name: Bash, command: "${endless('npm-test-')}"}
        - sleep: 3600s
turns:
  - - run: "mkdir -p src/${'deep/'.repeat(20)} && echo '${endless('text-')}' > src/${'deep/'.repeat(20)}${endless('file-').slice(0, 100)}-$PAWL_CASE.ts"
    - say: "Done.\\n<promise>COMPLETE</promise>"
`,
  'checks/unit.sh': sums,
  'release.yaml': `
name: ${endless('release-').slice(0, 100)}
steps:
  - {id: build, run: "echo built"}
  - {id: ${endless('check-').slice(0, 60)}, run: "echo ${endless('no-token-')} >&2; exit 3", needs: [build]}
  - {id: publish, run: "echo published", needs: [build]}
`,
};

let p: Project;
const runs: Record<string, string> = {};
async function build(): Promise<void> {
  p = await make(process.env.PAWL ?? 'pawl', files);
  const titles = [
    endless('Number-invoices-'),
    endless('scene-red-'),
    endless('scene-port-'),
    endless('scene-blocked-'),
    hebrew,
    `${hebrew} scene-red`,
    endless('Archive-'),
  ];
  const line = (t: string, i: number) =>
    `- [ ] ${t}\n  tags: ${endless(`tag${i}-`).slice(0, 40)}, part, critical\n  acceptance: ${endless('It-is-')}\n`;
  writeFileSync(join(p.dir, 'many.md'), titles.map(line).join(''));
  p.run('case', 'add', '-f', 'many.md');
  p.run('sprint', '--no-ready', '--max-iterations', '2', '--batch-review', '-q');
  p.run('case', 'approve', 'task-001');
  p.run('queue', 'land');
  p.run('run', 'nightly', '-q');
  p.run('run', 'release.yaml', '-q');
  p.run('case', 'add', endless('Later-'), '--description', endless('word-'), '--needs', 'task-002');
  p.run('case', 'add', endless('Import. scene-slow '), '--priority', '9');
  p.begin('autopilot', '-q');
  const context = await entered(p.url, 1280);
  const page = await context.newPage();
  await page.goto(p.url);
  await page.getByRole('article').first().waitFor();
  for (const r of (await api(page, '/api/v1/runs')).runs as { name: string; run: string }[]) runs[r.name] ??= r.run;
  await context.close();
}
let built: Promise<void> | undefined;
after(() => p?.close());

type Place = [name: string, path: () => string, then?: (page: Page) => Promise<unknown>];
const press = (key: string) => async (page: Page) => {
  await page.keyboard.press(key);
  await page.locator('dialog[open]').last().waitFor();
};
const flow = () => Object.keys(runs).find((name) => name.startsWith('release'))!;
const places: Place[] = [
  ['now', () => '/'],
  ['all that needs a person', () => '/', (page) => page.getByRole('button', { name: /^Show \d+ more/ }).click()],
  ['board', () => '/board'],
  ['board by operation', () => '/board?view=groups'],
  ['board by needs', () => '/board?view=needs'],
  ...['task-001', 'task-002', 'task-003', 'task-004', 'task-005', 'task-006', 'task-008'].map((id): Place => [
    id,
    () => `/board/${id}`,
    (page) => page.getByRole('heading', { name: 'History' }).waitFor(),
  ]),
  ['runs', () => '/runs'],
  ['run of a task', () => `/runs/${runs['task-001']}`],
  ['its changes', () => `/runs/${runs['task-001']}?show=changes`],
  ['its prompt', () => `/runs/${runs['task-001']}?show=prompt`],
  ['run at its limit', () => `/runs/${runs['task-002']}`],
  ['question', () => `/runs/${runs.nightly}`],
  ['workflow', () => `/runs/${runs[flow()]}`],
  ['running', () => `/runs/${runs['task-009']}`],
  ['comparison', () => `/compare?a=${runs['task-002']}.1&b=${runs['task-002']}.2`],
  ['side by side', () => '/wall'],
  ['queue', () => '/queue'],
  ['review', () => '/review'],
  ['sprint', () => '/sprint'],
  ['statistics', () => '/stats'],
  ['configuration', () => '/config'],
  ['plan', () => '/plan'],
  ['nothing', () => '/no/such/page'],
  ['add a task', () => '/board', press('n')],
  ['import tasks', () => '/board', press('I')],
  ['keys', () => '/board', press('?')],
  ['find', () => '/board', press('Control+k')],
  ['start a procedure', () => '/runs', press('n')],
  ['edit a task', () => '/board/task-002', press('e')],
  ['block a task', () => '/board/task-002', press('b')],
  ['more iterations', () => '/board/task-002', press('+')],
  ['message', () => `/runs/${runs['task-009']}`, press('m')],
  ['stop', () => `/runs/${runs['task-009']}`, press('x')],
  ['raise limits', () => `/runs/${runs['task-009']}`, press('+')],
  ['redo', () => '/review', press('R')],
];

for (const width of [320, 390, 640, 768, 1280, 1920]) {
  test(`nothing is cut off or over something else, ${width} px`, async (t) => {
    await (built ??= build());
    const context = await entered(p.url, width);
    const page = await context.newPage();
    const wrong = quiet(page);
    for (const [name, path, then] of places) {
      await t.test(name, async () => {
        await page.goto(new URL(path(), p.url).href);
        await page.getByText('Live', { exact: true }).waitFor({ state: 'attached' });
        await page.waitForFunction(() => !/(Loading|Asking|Adding up|Connecting)[^.]*…/.test(document.body.innerText));
        await then?.(page);
        assert.deepEqual(await faults(page), []);
        assert.deepEqual(wrong.splice(0), []);
      });
    }
    await context.close();
  });
}

test('what lies over something, out of the window or cut is found', async () => {
  await (built ??= build());
  const context = await entered(p.url, 1280);
  const page = await context.newPage();
  await page.goto(new URL('/config', p.url).href);
  await page.getByText('loop.safety').first().waitFor();
  await page.evaluate(() => {
    const add = (text: string, style: string) => {
      const e = document.createElement('p');
      e.textContent = text;
      e.style.cssText = `position: absolute; z-index: 99; white-space: nowrap; ${style}`;
      document.querySelector('main')!.append(e);
    };
    add('the one below', 'left: 500px; top: 300px');
    add('the one above', 'left: 510px; top: 304px');
    add('beyond the edge', 'left: 1240px; top: 400px');
    add('too long for its box', 'left: 500px; top: 500px; width: 30px; overflow: hidden');
  });
  const found = (await faults(page)).join('\n');
  for (const want of [
    /over each other: "the one below" and "the one above"/,
    /outside: .*"beyond the edge"/,
    /cut off: .*"too long for its box"/,
  ])
    assert.match(found, want);
  await context.close();
});

test('what a reader sees first is what changed, what proves it, and what is red', async () => {
  await (built ??= build());
  const context = await entered(p.url, 1280);
  const page = await context.newPage();
  const good = /1 file, \+1 -0; 2 gates passed/;
  const red = /gate Unit tests is red: .*adds dinars.*\(Reached max iterations: 2\)/;
  const open = async (path: string) => {
    await page.goto(new URL(path, p.url).href);
    await page.getByText('Live', { exact: true }).waitFor({ state: 'attached' });
    return page.locator('main');
  };
  let main = await open(`/runs/${runs['task-001']}`);
  await main.getByText(good).first().waitFor();
  main = await open(`/runs/${runs['task-002']}`);
  await main.getByText(red).first().waitFor();
  main = await open('/');
  await main.getByRole('button', { name: /^Show \d+ more/ }).click();
  await main
    .getByRole('button', { name: /at its limit/ })
    .first()
    .getByText(red)
    .waitFor();
  main = await open('/board');
  await main
    .getByRole('option', { name: /task-001/ })
    .getByText(new RegExp(`${good.source}; landed on main`))
    .waitFor();
  await main
    .getByRole('option', { name: /task-002/ })
    .getByText(/gate Unit tests is red/)
    .waitFor();
  main = await open('/runs');
  await main.getByText(good).first().waitFor();
  main = await open('/review');
  await main.getByRole('option').first().getByText(good).waitFor();
  // What no agent said the price of has none.
  for (const path of ['/', '/runs', '/stats', '/board/task-001', `/runs/${runs['task-001']}`]) {
    await open(path);
    await page.waitForFunction(() => !/(Loading|Adding up)[^.]*…/.test(document.body.innerText));
    assert.doesNotMatch(await page.locator('body').innerText(), /\$0\.00|COMPLETE, and/, path);
  }
  await context.close();
});
