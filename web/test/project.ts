// A project with a history: what the browser tests and the pictures are made
// of. Everything in it comes from real runs of the scripted agent.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';

const config = `
agent: script
agents:
  script: {command: [agent.yaml]}
  talker: {command: [node, talk.mjs, "20000"], output: script}
  chatter: {command: [node, talk.mjs, "20"], output: script}
loop: {max_iterations: 8, safety: permissive}
autopilot: {on_red_target: work} # its checks are red until the first work has landed
verification:
  commands:
    - {name: Unit Tests, command: "sh checks/unit.sh", timeout: 600s}
    - {name: Types, command: "sh checks/types.sh", timeout: 120s}
    - {name: Linting, command: "sh checks/lint.sh", timeout: 60s, required: false}
procedures:
  currency-format: {summary: Format amounts in every currency, act: [{content: "Format amounts. scene-currency"}]}
  retry-webhooks: {summary: Try failed webhooks again, act: [{content: "Retry webhooks. scene-webhooks"}]}
  which-database: {summary: Move the reports to another database, act: [{content: "Move reports. scene-question"}]}
  registry-access: {summary: Publish the client, act: [{content: "Publish. scene-blocked"}]}
  slow-import: {summary: Import customers in batches, act: [{content: "Import customers. scene-slow"}]}
  reviewed: {summary: Round totals, act: [{content: "Round totals. scene-currency"}]}
  talk: {summary: Say very much, agent: talker, act: [{content: "Talk."}]}
  chat: {summary: Say a little, agent: chatter, act: [{content: "Chat."}]}
  hostile: {summary: "<script>alert(1)</script>", act: [{content: "Hostile. scene-hostile"}]}
`;

/** sums is a check of tests: it is red where an agent left bad.txt. */
export const sums = `
if [ ! -e bad.txt ]; then echo "Tests:  47 passed, 47 total"; exit 0; fi
echo "FAIL src/sums.test.ts"
echo "  ● adds dinars"
echo "    Expected: \\"1.250\\""
echo "    Received: \\"1.25\\""
echo "      at Object.<anonymous> (src/sums.test.ts:41:34)"
echo "Tests:  1 failed, 46 passed, 47 total"
exit 1
`;

const agent = `
name: demo
model: scripted-1
scenes:
  - when: {prompt: scene-currency}
    turns:
      - - say: "I read the formatter first. \`money.ts\` rounds **before** it knows the currency:\\n\\n- yen get two decimals\\n- dinars lose one\\n\\n\`\`\`ts\\nreturn amount.toFixed(2);\\n\`\`\`"
        - tool: {name: Read, files: [src/money.ts]}
        - tool: {name: Bash, command: "grep -rn toFixed src | head", output: "src/money.ts:32:  return amount.toFixed(2);"}
        - think: "The number of decimals belongs to the currency. A table is enough; Intl would need a locale for every call."
        - run: "mkdir -p src && sed -i 's/toFixed(2)/toFixed(decimals(currency))/' src/money.ts && printf 'export const decimals = (c: string) => (c === \\"JPY\\" ? 0 : 2);\\n' > src/decimals.ts"
        - tool: {name: Edit, files: [src/money.ts, src/decimals.ts]}
        - usage: {input: 21400, output: 910, cost: 0.081}
        - say: "Amounts now take their decimals from the currency.\\n<promise>COMPLETE</promise>"
      - - say: "The test for dinars is right: they have three decimals. I add them to the table."
        - tool: {name: Read, files: [src/money.test.ts]}
        - run: "printf 'const table: Record<string, number> = { JPY: 0, KWD: 3, BHD: 3 };\\n\\nexport const decimals = (c: string) => table[c] ?? 2;\\n' > src/decimals.ts; touch src/ok"
        - tool: {name: Edit, files: [src/decimals.ts]}
        - tool: {name: Bash, command: "npm test -- money", output: "PASS src/money.test.ts\\nTests: 48 passed, 48 total"}
        - usage: {input: 24800, output: 640, cost: 0.094}
        - say: "All tests pass.\\n\\n| currency | decimals |\\n|---|---|\\n| JPY | 0 |\\n| KWD, BHD | 3 |\\n| all others | 2 |\\n\\n<promise>COMPLETE</promise>"
  - when: {prompt: scene-webhooks}
    turns:
      - - say: "Webhooks are sent once and forgotten. I look for where they leave."
        - tool: {name: Grep, command: "sendWebhook"}
        - run: "mkdir -p src && printf 'export const waits = [1, 5, 30, 120];\\n' > src/retry.ts"
        - usage: {input: 9200, output: 400, cost: 0.031}
      - - say: "A queue with four attempts."
        - run: "printf 'export const waits = [1, 5, 30, 120];\\nexport const next = (n: number) => waits[n];\\n' > src/retry.ts; touch src/ok"
        - usage: {input: 11900, output: 520, cost: 0.042}
        - say: "Failed webhooks are tried again after 1, 5, 30 and 120 minutes.\\n<promise>COMPLETE</promise>"
  - when: {prompt: scene-question}
    turns:
      - - say: "The reports read from two places today: the replica and the warehouse."
        - tool: {name: Read, files: [src/reports.ts]}
        - usage: {input: 15100, output: 300, cost: 0.048}
        - say: "<promise>PENDING: The reports read from the replica and from the warehouse. Which of the two shall stay?</promise>"
  - when: {prompt: scene-blocked}
    turns:
      - - tool: {name: Bash, command: "npm publish --dry-run", failed: true, output: "npm error code ENEEDAUTH\\nnpm error need auth This command requires you to be logged in"}
        - usage: {input: 5100, output: 130, cost: 0.012}
        - say: "<promise>BLOCKED: the registry asks for a token that is not in this environment</promise>"
  - when: {prompt: scene-slow}
    turns:
      - - say: "Customers come in one transaction today; a bad line loses all of them. I split the file into batches of 500."
        - tool: {name: Read, files: [src/import.ts, src/customer.ts]}
        - usage: {input: 12600, output: 350, cost: 0.044}
        - run: "mkdir -p src && printf 'export const batch = 500;\\n' > src/import.ts"
        - tool: {name: Edit, files: [src/import.ts]}
        - sleep: 1s
        - tool: {name: Bash, command: "npm test -- import"}
        - say: "The batch that holds the bad line fails now, and only it. Next is the report of what was left out."
        - sleep: 3600s
  - when: {prompt: scene-port}
    turns:
      - - say: "<promise>PENDING: Which port does the archive listen on?</promise>"
      - - expect_prompt: "port 8080"
        - run: "mkdir -p src && echo 8080 > src/port; touch src/ok"
        - say: "<promise>COMPLETE</promise>"
  - when: {prompt: scene-held}
    turns:
      - - say: "I wait for the word."
        - run: "until test -e $HOME/word; do sleep 0.1; done; mkdir -p src && echo held > src/held; touch src/ok"
        - say: "<promise>COMPLETE</promise>"
  - when: {prompt: scene-hostile}
    turns:
      - - say: "<script>document.title='owned'</script><img src=x onerror=alert(1)> \\u202Egnp.exe \\u001b[31mred\\u001b[0m\\n\\n# <b>head</b>\\n\\n[click](javascript:alert(1)) ![x](https://pixel.example/p.png)\\n\\n\`\`\`html\\n<img src=x onerror=alert(2)>\\n\`\`\`\\n\\n| <i>a</i> | b |\\n|---|---|\\n| <script>1</script> | 2 |"
        - tool: {name: "<b>Bash</b>", command: "echo '<svg onload=alert(1)>'", output: "<svg onload=alert(1)> \\u001b[31mred"}
        - run: "mkdir -p src && printf '<script>alert(1)</script>\\n' > 'src/<img src=x onerror=alert(1)>.html'; touch src/ok"
        - raw: "head -c 1000000 /dev/zero | tr -c n n; echo"
        - say: "Done.\\n<promise>COMPLETE</promise>"
turns:
  - - say: "I do what the task says."
    - run: "mkdir -p src && echo $PAWL_CASE > src/done-$PAWL_CASE.txt; touch src/ok"
    - usage: {input: 8000, output: 300, cost: 0.03}
    - say: "<promise>COMPLETE</promise>"
`;

// Says as many things as its argument says, and then what is in the file talk.txt of the home folder whenever that
// appears; of count N the numbers up to N, one after the other.
const talk = `
import { existsSync, readFileSync, rmSync } from 'node:fs';
const told = \`\${process.env.HOME}/talk.txt\`;
const say = (text) => process.stdout.write(JSON.stringify({ type: 'text', text }) + '\\n');
console.log(JSON.stringify({ type: 'start', session: 's', model: 'scripted-1' }));
for (let i = 1; i <= Number(process.argv[2]); i++) say(\`Thing \${i} of very many. \${'It takes a few words to say. '.repeat(i % 5)}\`);
setInterval(() => {
  if (!existsSync(told)) return;
  const lines = readFileSync(told, 'utf8').split('\\n');
  rmSync(told);
  for (const line of lines) {
    const [, count] = /^count (\\d+)$/.exec(line) ?? [];
    let n = 0;
    const one = () => (say(\`Number \${++n}.\`), n < Number(count) ? setTimeout(one, 3) : say(\`Counted to \${n}.\`));
    if (count) one();
    else if (line) say(line);
  }
}, 20);
`;

const unit = `
if [ -f src/ok ]; then echo "Tests: 48 passed, 48 total"; exit 0; fi
echo "FAIL src/money.test.ts"
echo "  ● formats dinars"
echo "    Expected: \\"1.250 KWD\\""
echo "    Received: \\"1.25 KWD\\""
echo "      at Object.<anonymous> (src/money.test.ts:41:34)"
echo "Tests: 1 failed, 47 passed, 48 total"
exit 1
`;

const plan = `
- [ ] Invoices
  - [ ] Number invoices without gaps
    tags: critical, billing
    ref: numbers
  - [ ] Send a copy of each invoice to the archive
    tags: billing
  - [ ] Credit notes refer to their invoice
    needs: numbers
    tags: billing
- [ ] Import of customers
  - [ ] Read files with semicolons
    tags: import, quick-win
  - [ ] Report the lines that were left out
    tags: import
  - [ ] Show progress for files of more than 10,000 lines
    tags: import, ui
- [ ] Search
  - [ ] Find customers by part of their name
    tags: search
    ref: partial
  - [ ] Rank exact matches first
    needs: partial
    tags: search
  - [ ] Keep the last ten searches
    tags: search, ui
- [ ] Say what went wrong when the mail server refuses
  tags: critical
- [ ] Dark colours for the print preview
  tags: ui
- [x] Sign in with a passkey
- [x] Delete accounts after thirty days
`;

/** Project is a folder with a history and a server. */
export interface Project {
  dir: string;
  home: string;
  url: string;
  state: string;
  run(...args: string[]): string;
  git(args: string[], input?: string): string;
  begin(...args: string[]): ChildProcess;
  /** restart ends the server and starts it again; meanwhile runs in between. */
  restart(meanwhile: () => unknown): Promise<void>;
  close(): Promise<void>;
  /** pid is the server's. */
  pid(): number;
}

/** make builds the project; pawl is the program, and files are others than those above. */
export async function make(pawl: string, files: Record<string, string> = {}, port = 0): Promise<Project> {
  const top = mkdtempSync(join(tmpdir(), 'pawl-pages-'));
  const dir = join(top, 'ledger');
  mkdirSync(join(dir, 'checks'), { recursive: true });
  mkdirSync(join(dir, 'src'));
  const state = join(top, 'state');
  const env = {
    ...process.env,
    XDG_STATE_HOME: state,
    XDG_CONFIG_HOME: join(top, 'config'),
    HOME: top,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_AUTHOR_NAME: 'Test',
    GIT_AUTHOR_EMAIL: 'test@example.com',
    GIT_COMMITTER_NAME: 'Test',
    GIT_COMMITTER_EMAIL: 'test@example.com',
  };
  const write = (name: string, text: string) => writeFileSync(join(dir, name), files[name] ?? text);
  write('pawl.yaml', config.trimStart());
  write('agent.yaml', agent.trimStart());
  write('plan.md', plan.trimStart());
  write('talk.mjs', talk.trimStart());
  write('checks/unit.sh', unit.trimStart());
  write('checks/types.sh', 'echo checked 214 files\n');
  write('checks/lint.sh', 'echo no remarks\n');
  write(
    'src/money.ts',
    Array.from({ length: 60 }, (_, i) =>
      i === 31 ? '  return amount.toFixed(2);' : `// line ${i + 1} of the formatter`,
    ).join('\n') + '\n',
  );
  for (const [name, text] of Object.entries(files)) write(name, text);
  const git = (args: string[], input?: string) =>
    execFileSync('git', args, {
      cwd: dir,
      env,
      stdio: 'pipe',
      encoding: 'utf8',
      ...(input === undefined ? {} : { input }),
    });
  git(['init', '-q', '-b', 'main']);
  git(['add', '-A']);
  git(['commit', '-qm', 'Begin']);

  const children: ChildProcess[] = [];
  const begin = (...args: string[]) => {
    const child = spawn(pawl, args, { cwd: dir, env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    return child;
  };
  const run = (...args: string[]) => {
    try {
      return execFileSync(pawl, args, { cwd: dir, env, stdio: 'pipe', encoding: 'utf8' });
    } catch (error) {
      const e = error as { status: number | null; stdout: string; stderr: string };
      if (e.status === null) throw error;
      return e.stdout + e.stderr; // a run that stops for a person has another status
    }
  };
  const end = (c: ChildProcess) =>
    c.exitCode !== null || c.signalCode !== null
      ? Promise.resolve()
      : new Promise<void>((resolve) => {
          c.once('exit', () => resolve());
          c.kill('SIGTERM');
        });
  let address = '';
  /** serve starts the server, and waits until it has said where it is. */
  const serve = () =>
    new Promise<[ChildProcess, string]>((resolve, reject) => {
      const child = begin('serve', '--address', address);
      let said = '';
      const read = (data: Buffer) => {
        said += data.toString();
        const url = /https?:\/\/\S+token=\w+/.exec(said)?.[0];
        if (url) resolve([child, url]);
      };
      child.stdout.on('data', read);
      child.stderr.on('data', read);
      child.on('exit', (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
    });
  // A port that nobody has, below those that the system gives to clients.
  const first = async (tries: number): Promise<[ChildProcess, string]> => {
    address = `127.0.0.1:${port || 20000 + Math.floor(Math.random() * 12000)}`;
    try {
      return await serve();
    } catch (error) {
      if (tries === 0 || port || !/in use/.test(String(error))) throw error;
      return first(tries - 1);
    }
  };
  const [begun, url] = await first(20);
  let server = begun;
  const restart = async (meanwhile: () => unknown) => {
    await end(server);
    await meanwhile();
    [server] = await serve();
  };
  const close = async () => {
    await Promise.all(children.map(end));
    rmSync(top, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  return { dir, home: top, url, state, run, git, begin, restart, close, pid: () => server.pid! };
}

/** fill makes the history: runs of every kind, and a board. */
export function fill(p: Project): void {
  p.run('case', 'add', '-f', 'plan.md');
  for (const name of ['currency-format', 'retry-webhooks', 'registry-access', 'which-database']) {
    p.run('run', name, '-q');
    rmSync(join(p.dir, 'src/ok'), { force: true });
  }
  p.run('case', 'block', 'task-006', '--why', 'waits for the new file format');
  p.run('case', 'defer', 'task-011');
}

/** api is an answer of the server to a page that was let in. */
export const api = (page: Page, path: string) =>
  page.evaluate(
    async (path) => (await fetch(path, { headers: { 'X-Pawl-Key': localStorage.getItem('pawl.key') ?? '' } })).json(),
    path,
  );

/** blocked is a project whose agent leaves each task, with its workspace, to a person. */
export const blocked = {
  'pawl.yaml': `
agent: script
agents: {script: {command: [agent.yaml]}}
loop: {max_iterations: 2}
`,
  'agent.yaml': `
name: demo
turns:
  - - say: "<promise>BLOCKED: a person must look</promise>"
`,
};
