// A project as it is after weeks: 70 tasks in every state, about 70 runs, three agents running, a conflict, a
// workflow whose step failed, and texts that are long, from right to left, or full of signs.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { make, sums, type Project } from './project';

const words = [
  'invoices',
  'customers',
  'exports',
  'searches',
  'mails',
  'reports',
  'prices',
  'accounts',
  'stocks',
  'orders',
];
const deeds = ['Number', 'Check', 'Archive', 'Print', 'Count', 'Sort'];
const title = (i: number) => `${deeds[i % 6]} ${words[Math.floor(i / 6) % 10]} of part ${i + 1}`;
const long =
  `A title as people paste it from a mail: ${'the totals of the quarter differ from those of the months, and nobody knows since when; '.repeat(6)}`.slice(
    0,
    500,
  );

const files = {
  'pawl.yaml': `
agent: script
agents: {script: {command: [agent.yaml]}, careful: {command: [agent.yaml], output: script}}
loop: {max_iterations: 3, safety: permissive}
autopilot: {max_parallel: 3, error_threshold: 0}
review: {mode: person}
verification:
  commands:
    - {name: Unit tests, command: "sh checks/unit.sh", timeout: 600s}
    - {name: Types, command: "sh checks/types.sh", timeout: 120s}
    - {name: Linting, command: "sh checks/lint.sh", timeout: 60s, required: false}
procedures:
  nightly: {summary: Look through the night's logs, act: [{content: "Look. scene-easy"}]}
`,
  'agent.yaml': `
name: demo
model: scripted-1
scenes:
  - when: {prompt: scene-port}
    turns:
      - - say: "<promise>PENDING: Which port does the archive listen on? The old one is taken by the mail server, and the new one is not open in the firewall of the second office yet.</promise>"
  - when: {prompt: scene-blocked}
    turns:
      - - say: "<promise>BLOCKED: the registry asks for a token that is not in this environment</promise>"
  - when: {prompt: scene-red}
    turns:
      - - {write: {path: bad.txt, content: "1"}, say: "The sums are right now.\\n<promise>COMPLETE</promise>"}
        - usage: {input: 9000, output: 300, cost: 0.04}
      - - {write: {path: worse.txt, content: "1"}, say: "I looked again.\\n<promise>COMPLETE</promise>"}
        - usage: {input: 9000, output: 300, cost: 0.04}
      - - {write: {path: worst.txt, content: "1"}, say: "And again.\\n<promise>COMPLETE</promise>"}
        - usage: {input: 9000, output: 300, cost: 0.04}
  - when: {prompt: scene-key}
    turns:
      - api_error: {status: 401, type: authentication_error, message: "invalid key"}
  - when: {prompt: scene-slow}
    turns:
      - - say: "Customers come in one transaction today; a bad line loses all of them. I split the file into batches of 500."
        - tool: {name: Read, files: [src/import.ts, src/customer.ts]}
        - usage: {input: 12600, output: 350, cost: 0.044}
        - run: "mkdir -p src && printf 'export const batch = 500;\\\\n' > src/import-$PAWL_CASE.ts"
        - tool: {name: Edit, files: [src/import.ts]}
        - run: "seq 1 1000 | sed 's/^/line /'"
        - tool: {name: Bash, command: "npm test -- import"}
        - say: "The batch that holds the bad line fails now, and only it. Next is the report of what was left out."
        - sleep: 3600s
turns:
  - - say: "I read the formatter first. It rounds **before** it knows the currency."
    - tool: {name: Read, files: [src/money.ts]}
    - run: "mkdir -p src && sed -i 's/toFixed(2)/toFixed(digits(currency))/' src/money.ts && printf 'export function digits(currency: string) {\\\\n  return currency === \\"JPY\\" ? 0 : 2;\\\\n}\\\\n' > src/digits-$PAWL_CASE.ts"
    - usage: {input: 8000, output: 300, cost: 0.03}
    - say: "Amounts take their digits from the **currency**.\\n<promise>COMPLETE</promise>"
`,
  'checks/unit.sh': `seq 1 1000 | sed 's/^/ran test number /'
${sums}`,
  'release.yaml': `
name: release
steps:
  - {id: build, run: "echo built {{context.version}}"}
  - {id: check, run: "seq 1 300; echo looking for a token; echo no token >&2; exit 3", needs: [build]}
  - {id: docs, run: "echo docs", needs: [build]}
  - {id: sign, run: "echo signed", needs: [build]}
  - {id: publish, run: "echo published", needs: [check, docs, sign]}
`,
};

/** scenes are what the agents do with a task: most of them well. */
const scene = (i: number) =>
  i === 3 ? ' scene-port' : i === 7 ? ' scene-blocked' : i % 9 === 4 ? ' scene-red' : i % 23 === 11 ? ' scene-key' : '';

/** crowd makes the project. It takes a minute or two. */
export async function crowd(pawl: string): Promise<Project> {
  const p = await make(pawl, files);
  const line = (i: number) =>
    `- [ ] ${title(i)}.${scene(i)}\n  tags: part${i % 7}${i % 5 ? '' : ', critical'}\n  ref: r${i}\n${i % 8 === 6 ? `  needs: r${i - 1}, r${i - 2}\n` : ''}`;
  writeFileSync(join(p.dir, 'many.md'), Array.from({ length: 50 }, (_, i) => line(i)).join(''));
  p.run('case', 'add', '-f', 'many.md');
  p.run('sprint', '--no-ready', '--max-iterations', '2', '--batch-review', '-q');
  const reviews = JSON.parse(
    `[${p.run('case', 'list', '--status', 'review', '--json').trim().split('\n').join(',')}]`,
  ).flat() as { id: string }[];
  for (const { id } of reviews.slice(0, 30)) p.run('case', 'approve', id);
  p.run('queue', 'land');
  // What lands later changes the same line in another way.
  const rival = readFileSync(join(p.dir, 'src/money.ts'), 'utf8').replace(
    /return amount.*;/,
    'return round(amount, 3); // as the bank does it',
  );
  const root = p.git(['rev-list', '--max-parents=0', 'main']).trim();
  p.git(
    ['fast-import', '--quiet'],
    `commit refs/heads/rival\ncommitter T <t@example.com> 1700000000 +0000\ndata 1\nx\nfrom ${root}\nM 100644 inline src/money.ts\ndata ${Buffer.byteLength(rival)}\n${rival}\n`,
  );
  const id = /task-\d+/.exec(p.run('case', 'add', 'Round as the bank does it'))![0];
  p.run('queue', 'add', id, '--commit', 'rival');
  p.run('queue', 'land');
  p.git(['branch', '-q', '-D', 'rival']);
  for (let i = 0; i < 14; i++) p.run('run', 'nightly', '-q', '--fresh');
  p.run('run', 'release.yaml', '--fresh', '-q', '--context', 'version=2.4');
  p.run(
    'case',
    'add',
    long,
    '--description',
    'The **months** are right.\n\n' + 'They come from the ledger. '.repeat(60),
    '--priority',
    '3',
  );
  p.run('case', 'add', 'בדוק את הסכומים של החשבוניות לפני סוף הרבעון', '--tag', 'rtl');
  p.run('case', 'add', '🚀 Ship it 🎉 before 🕛, with 👩‍👩‍👧‍👦 and 🇳🇴', '--tag', 'emoji');
  p.run(
    'case',
    'add',
    'A task with a hundred criteria',
    ...Array.from({ length: 100 }, (_, i) => [
      '--acceptance',
      `Criterion ${i + 1}: ${i % 3 ? 'it is so' : 'the totals of all invoices fit those of the ledger, whatever the currency is'}`,
    ]).flat(),
  );
  writeFileSync(
    join(p.dir, 'more.md'),
    Array.from({ length: 13 }, (_, i) => `- [ ] ${title(i + 50)}\n  tags: later\n`).join(''),
  );
  p.run('case', 'add', '-f', 'more.md');
  p.run('case', 'add', 'Import customers in batches. scene-slow', '--priority', '9');
  p.run('case', 'add', 'Import products in batches. scene-slow', '--priority', '9');
  p.run(
    'case',
    'add',
    'Import prices in batches, and say which of them were left out and why. scene-slow',
    '--priority',
    '9',
  );
  p.begin('autopilot', '--keep', '-q');
  await new Promise((resolve) => setTimeout(resolve, 8000));
  return p;
}
