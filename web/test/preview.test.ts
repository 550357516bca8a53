// What a task serves on its ports, seen in the browser, and what a hostile page there can do.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { BrowserContext, Page } from 'playwright-core';
import { blocked, make, type Project } from './project';
import { api, entered, quiet, stranger, violations } from './rig';

const files = {
  ...blocked,
  'tasks.md': '- [ ] Print invoices\n- [ ] Print notes\n',
};

let own: Project;
before(async () => {
  own = await make(process.env.PAWL ?? 'pawl', files);
  own.run('case', 'add', '-f', 'tasks.md');
  own.run('autopilot', '--max-iterations', '1', '-q');
});
after(() => own?.close());

const at = (path: string) => new URL(path, own.url).href;
const shots = async (page: Page, name: string) =>
  process.env.SHOTS && (await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`) }));
const first = async (page: Page, id: string) =>
  ((await api(page, `/api/v1/cases/${id}`)) as { workspace: { first_port: number } }).workspace.first_port;

/** panel opens a task. */
async function panel(context: BrowserContext, id: string) {
  const page = await context.newPage();
  await page.goto(at(`/board/${id}`));
  await page.getByRole('button', { name: 'Preview' }).waitFor();
  return page;
}

/** seen asks for the preview by its key, and returns the page that opens. */
async function seen(context: BrowserContext, page: Page): Promise<Page> {
  const [shown] = await Promise.all([context.waitForEvent('page'), page.keyboard.press('v')]);
  return shown;
}

/** serve serves on a port of this machine as a task does. */
async function serve(
  t: { after(f: () => void): void },
  port: number,
  answer: (q: IncomingMessage) => string,
): Promise<Server> {
  const s = createServer((q, r) => {
    r.setHeader('Content-Type', q.url!.endsWith('.js') ? 'text/javascript' : 'text/html');
    r.setHeader('Service-Worker-Allowed', '/');
    r.end(answer(q));
  }).listen(port, '127.0.0.1');
  await new Promise((resolve) => s.once('listening', resolve));
  t.after(() => void s.close());
  return s;
}

for (const [width, scheme, id] of [
  [1440, 'light', 'task-001'],
  [390, 'dark', 'task-002'],
] as const)
  test(`what a task serves: started in its terminal, seen by a click, ${width} wide`, async (t) => {
    const context = await entered(own.url, width, scheme);
    t.after(() => context.close());
    const page = await panel(context, id);
    const wrong = quiet(page);
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.getByText(new RegExp(`Nothing answers on the ports \\d+ to \\d+ of ${id}`)).waitFor();
    const [terminal] = await Promise.all([
      context.waitForEvent('page'),
      page.getByRole('link', { name: 'Terminal' }).click(),
    ]);
    await terminal.getByRole('status').getByText('Open.').waitFor();
    const rows = terminal.locator('.xterm-rows');
    await rows.getByText(/[$#]/).first().waitFor(); // its prompt
    await terminal.keyboard.type(
      `node -e "require('http').createServer((q, s) => s.end('<h1>Made by a task</h1>')).listen(process.env.PAWL_PORT_BASE, '127.0.0.1', () => console.log('serves', 6 * 7))"\n`,
    );
    await rows
      .getByText('serves 42')
      .first()
      .waitFor()
      .catch(async (e) => assert.fail(`${e}\n${await rows.innerText()}`));
    const shown = await seen(context, page);
    wrong.push(...quiet(shown));
    await shown.getByRole('heading', { name: 'Made by a task' }).waitFor();
    assert.equal(new URL(shown.url()).host, `p${await first(page, id)}-${id}.localhost:${new URL(own.url).port}`);
    assert.equal(new URL(shown.url()).pathname + new URL(shown.url()).search, '/');
    assert.deepEqual(await violations(page), []);
    assert.ok(
      await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
      'the page is wider than the screen',
    );
    await shots(page, `preview-${width}`);
    assert.deepEqual(
      wrong.filter((w) => !/favicon/.test(w)),
      [],
    );
    // It ends with the terminal, and the page says so.
    await terminal.close();
    for (;;) {
      await shown.reload();
      if (await shown.getByRole('heading', { name: 'Nothing answers on this port now' }).isVisible()) break;
    }
    assert.deepEqual(await violations(shown), []);
  });

test('one of several ports is chosen', async (t) => {
  const context = await entered(own.url, 1440);
  t.after(() => context.close());
  const page = await panel(context, 'task-001');
  const port = await first(page, 'task-001');
  await serve(t, port + 3, () => '<h1>the front</h1>');
  await serve(t, port + 7, () => '<h1>the back</h1>');
  await page.getByRole('button', { name: 'Preview' }).click();
  const asked = page.getByRole('dialog', { name: 'Preview of task-001' });
  await asked.getByLabel('Port').selectOption(String(port + 7));
  assert.deepEqual(await violations(page), []);
  const [shown] = await Promise.all([
    context.waitForEvent('page'),
    asked.getByRole('button', { name: 'Open' }).click(),
  ]);
  await shown.getByRole('heading', { name: 'the back' }).waitFor();
});

test('a link lets one browser in once, at one port of one task', async (t) => {
  const context = await entered(own.url, 1440);
  t.after(() => context.close());
  const page = await panel(context, 'task-001');
  const port = await first(page, 'task-001');
  await serve(t, port, () => '<h1>one</h1>');
  await serve(t, await first(page, 'task-002'), () => '<h1>two</h1>');
  const link = async (id: string, body: object, key = true) => {
    const answer = await page.evaluate(
      async ([id, body, key]) => {
        const r = await fetch(`/api/v1/cases/${id}/preview`, {
          method: 'POST',
          body,
          headers: {
            'Content-Type': 'application/json',
            ...(key ? { 'X-Pawl-Key': localStorage.getItem('pawl.key')! } : {}),
          },
        });
        return [r.status, await r.json()] as const;
      },
      [id, JSON.stringify(body), key] as const,
    );
    return { status: answer[0], url: (answer[1] as { url?: string }).url ?? '' };
  };
  assert.equal((await link('task-001', {}, false)).status, 401);
  assert.equal((await link('task-001', { port: 22 })).status, 409);
  assert.equal((await link('task-001', { port: await first(page, 'task-002') })).status, 409);
  const { url } = await link('task-001', {});
  const visit = async (address: string, who = context) => {
    const p = await who.newPage();
    await p.goto(address);
    const text = await p.getByRole('heading').first().innerText();
    await p.close();
    return text;
  };
  const outside = await stranger();
  t.after(() => outside.close());
  const root = new URL('/', url).href;
  assert.match(await visit(root, outside), /no access here/);
  assert.match(await visit(url.replace(/ticket=.*/, 'ticket=guessed'), outside), /used, or too old/);
  assert.equal(await visit(url), 'one');
  assert.match(await visit(url, outside), /used, or too old/);
  assert.match(await visit(root, outside), /no access here/);
  assert.equal(await visit(root), 'one');
  // Another port, another task, and what is no port of a task, are other names.
  assert.match(await visit(root.replace(`p${port}`, `p${port + 1}`)), /no access here/);
  assert.match(await visit(root.replace('task-001', 'task-002')), /no access here/);
  // What one preview has is not another one's: a copied cookie opens nothing there.
  const [cookie] = (await context.cookies(root)).filter((c) => c.name === 'pawl_preview');
  assert.ok(cookie!.httpOnly && cookie!.sameSite === 'Lax' && cookie!.expires === -1);
  assert.equal(
    (await fetch(at('/'), { headers: { cookie: `pawl_${new URL(own.url).port}=${cookie!.value}` } })).status,
    401,
  );
});

test('a hostile page in a preview can do nothing to the pages', async (t) => {
  const context = await entered(own.url, 1440);
  t.after(() => context.close());
  const page = await panel(context, 'task-001');
  const [port, theirs] = [await first(page, 'task-001'), await first(page, 'task-002')];
  const got: string[] = [];
  await serve(t, port, (q) => {
    got.push(`${q.url} ${q.headers.cookie ?? ''}`);
    return q.url!.endsWith('.js')
      ? "addEventListener('fetch', () => {})"
      : '<!doctype html><title>hostile</title><h1>hostile</h1>';
  });
  await serve(t, theirs, () => '<h1>two</h1>');
  const shown = await seen(context, page);
  await shown.getByRole('heading', { name: 'hostile' }).waitFor();
  const ui = new URL(own.url).origin;
  const other = `http://p${theirs}-task-002.localhost:${new URL(own.url).port}/`;
  const second = await panel(context, 'task-002');
  await (await seen(context, second)).getByRole('heading', { name: 'two' }).waitFor();
  const cookies = async () =>
    (await context.cookies()).filter((c) => c.domain === '127.0.0.1').map((c) => `${c.name}=${c.value}`);
  const held = await cookies();
  const before = await api(page, '/api/v1/cases?limit=1000');

  const did = await shown.evaluate(
    async ([ui, other]) => {
      const tried = async (what: Promise<unknown>) =>
        what.then(
          (v) => String(v),
          (e: Error) => e.name,
        );
      const send = (address: string, init: RequestInit = {}) =>
        tried(
          fetch(address, { credentials: 'include', ...init }).then(
            async (r) => `${r.type} ${r.status} ${(await r.text()).slice(0, 20)}`,
          ),
        );
      const socket = (address: string) =>
        new Promise<string>((resolve) => {
          const s = new WebSocket(address);
          s.onopen = () => resolve('open');
          s.onerror = () => resolve('refused');
        });
      const framed = (address: string) =>
        new Promise<void>((resolve) => {
          const f = document.createElement('iframe');
          f.src = address;
          f.onload = () => resolve();
          document.body.append(f);
        });
      const json = { 'Content-Type': 'application/json' };
      const loaded = (address: string) =>
        new Promise<string>((resolve) => {
          const s = document.createElement('script');
          s.src = address;
          s.onload = () => resolve('loaded');
          s.onerror = () => resolve('refused');
          document.body.append(s);
        });
      document.cookie = 'everywhere=1; Domain=localhost; Path=/';
      document.cookie = `pawl_${new URL(ui).port}=mine; Domain=127.0.0.1; Path=/`;
      document.cookie = 'here=1; Path=/';
      return {
        reads: await send(`${ui}/api/v1/overview`),
        blindly: await send(`${ui}/api/v1/cases`, { method: 'POST', mode: 'no-cors', body: '{"title":"evil"}' }),
        asJSON: await send(`${ui}/api/v1/cases`, { method: 'POST', headers: json, body: '{"title":"evil"}' }),
        opens: await send(`${ui}/api/v1/cases/task-001/terminal`, { method: 'POST', headers: json, body: '{}' }),
        here: await send('/api/v1/overview'),
        socket: await socket(`${ui.replace('http', 'ws')}/api/v1/terminal?ticket=x`),
        theirSocket: await socket(other.replace('http', 'ws')),
        theirs: await send(other),
        theirPost: await send(other, { method: 'POST', mode: 'no-cors', body: 'x' }),
        script: await loaded(`${ui}/theme.js`),
        theirScript: await loaded(`${other}x.js`),
        frames: [await framed(`${ui}/board`), await framed(`${ui}/terminal/task-001`), await framed(other)].length,
        cookie: document.cookie,
        opener: String(window.opener),
        worker: await tried(navigator.serviceWorker.register('/w.js', { scope: '/' }).then((r) => r.scope)),
      };
    },
    [ui, other] as const,
  );
  assert.equal(did.reads, 'TypeError');
  assert.match(did.blindly, /^(TypeError|opaque 0 )/);
  assert.equal(did.asJSON, 'TypeError');
  assert.equal(did.opens, 'TypeError');
  assert.match(did.here, /^basic 200 <!doctype html>/, 'the API has no address at this name');
  assert.deepEqual(
    [did.socket, did.theirSocket, did.script, did.theirScript],
    ['refused', 'refused', 'refused', 'refused'],
  );
  assert.equal(did.theirs, 'TypeError');
  assert.match(did.theirPost, /^(TypeError|opaque 0 )/);
  const frames = shown
    .frames()
    .slice(1)
    .map((f) => f.url());
  assert.equal(frames.length, did.frames);
  assert.ok(
    frames.every((f) => f.startsWith('chrome-error:')),
    `refused in frames: ${frames.join(', ')}`,
  );
  assert.equal(did.cookie, 'here=1', 'it has no cookie but its own');
  assert.equal(did.opener, 'null');
  assert.equal(did.worker, new URL('/', shown.url()).href, 'a worker has this name alone');

  // No cookie of the pages came to the task, and none of the task's to the pages.
  assert.ok(got.length > 0 && !got.some((g) => /pawl_|everywhere/.test(g)), got.join('\n'));
  assert.deepEqual(await cookies(), held);
  assert.deepEqual(await api(page, '/api/v1/cases?limit=1000'), before);
  // The pages are not held by the worker, nor is the other preview.
  await page.reload();
  await page.getByRole('button', { name: 'Preview' }).waitFor();
  assert.equal(await page.evaluate(() => navigator.serviceWorker.controller), null);
});

test('what a check prints is seen while it runs', async (t) => {
  const checked = await make(process.env.PAWL ?? 'pawl', {
    'pawl.yaml': `
agent: script
agents: {script: {command: [agent.yaml]}}
loop: {safety: permissive}
verification:
  commands: [{name: Unit Tests, command: "sh checks/unit.sh"}]
procedures: {slow: {act: [{content: Work.}]}}
`,
    'agent.yaml': 'name: demo\nturns:\n  - - run: "touch ran"\n    - say: "<promise>COMPLETE</promise>"\n',
    'checks/unit.sh':
      'if ! test -e ran; then echo before the agent; until test -e $HOME/begin; do sleep 0.05; done; exit 0; fi; echo the first line; until test -e $HOME/go; do sleep 0.05; done; echo the second line; until test -e $HOME/on; do sleep 0.05; done\n',
  });
  t.after(() => checked.close());
  const context = await entered(checked.url, 1440);
  t.after(() => context.close());
  checked.begin('run', 'slow', '-q');
  const page = await context.newPage();
  const wrong = quiet(page);
  await page.goto(checked.url);
  await page.getByRole('article', { name: 'slow' }).getByRole('link').first().click();
  await page.waitForURL('**/runs/*');
  // Also before the first agent, on the files as they are.
  await page.getByText('On the files as they are, before the first agent.').waitFor();
  await page.getByRole('button', { name: 'Unit Tests' }).click();
  const printed = page.getByRole('region', { name: 'gate-1.out' });
  await printed.getByText('before the agent').waitFor();
  await shots(page, 'check-before');
  writeFileSync(join(checked.home, 'begin'), '');
  await page.getByText('On the files as they are, before the first agent.').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Unit Tests' }).click();
  await printed.getByText('the first line').waitFor();
  writeFileSync(join(checked.home, 'go'), '');
  await printed.getByText('the second line').waitFor();
  await shots(page, 'check');
  writeFileSync(join(checked.home, 'on'), '');
  await page.locator('.badge', { hasText: 'completed' }).first().waitFor();
  assert.deepEqual(wrong, []);
});
