// A terminal in the workspace of a task, and what may not open one.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { blocked, make, type Project } from './project';
import { entered, quiet, stranger, violations } from './rig';

const files = {
  ...blocked,
  'tasks.md': '- [ ] Print invoices\n- [ ] Nobody works on this\n',
};

let own: Project;
before(async () => {
  own = await make(process.env.PAWL ?? 'pawl', files);
  own.run('case', 'add', '-f', 'tasks.md');
  own.run('case', 'defer', 'task-002');
  own.run('autopilot', '--max-iterations', '1', '-q');
});
after(() => own?.close());

const at = (path: string) => new URL(path, own.url).href;
const rows = (page: Page) => page.locator('.xterm-rows');
const state = (page: Page) => page.getByRole('status');
const shots = async (page: Page, name: string) =>
  process.env.SHOTS && (await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`) }));

/** opened opens the terminal of the task as a person does: one click in its panel, or one key. */
async function opened(width: number, scheme: 'light' | 'dark' = 'light') {
  const context = await entered(own.url, width, scheme);
  const panel = await context.newPage();
  const wrong = quiet(panel);
  await panel.goto(at('/board/task-001'));
  const link = panel.getByRole('link', { name: 'Terminal' });
  const [page] = await Promise.all([
    context.waitForEvent('page'),
    width < 700 ? link.click() : link.waitFor().then(() => panel.keyboard.press('t')),
  ]);
  wrong.push(...quiet(page));
  await state(page).getByText('Open.').waitFor();
  return { context, panel, page, wrong };
}

for (const [width, scheme] of [
  [1440, 'light'],
  [390, 'dark'],
] as const)
  test(`a terminal in the sandbox of a task, ${width} wide`, async () => {
    const { context, panel, page, wrong } = await opened(width, scheme);
    await page.keyboard.type('echo "here $((6 * 7)) $PAWL_PORT_BASE"; pwd\n');
    await rows(page)
      .getByText(/here 42 \d{5}/)
      .first()
      .waitFor();
    await rows(page)
      .getByText(/workspaces\/task-001/)
      .first()
      .waitFor();
    // Colours, and a size that is the screen's.
    await page.keyboard.type("printf '\\033[32mgr\\033[0meen\\n'; stty size\n");
    await rows(page).getByText('green').first().waitFor();
    const columns = await page.evaluate(() =>
      Math.round(document.querySelector('.xterm-screen')!.getBoundingClientRect().width),
    );
    assert.ok(columns <= width && columns > width * 0.8, `${columns} px of ${width}`);
    // A row is as high as its font, which has underscores at the bottom.
    const [row, font] = await rows(page)
      .locator('> div')
      .first()
      .evaluate((e) => {
        const pen = document.createElement('canvas').getContext('2d')!;
        pen.font = `${getComputedStyle(e).fontSize} ${getComputedStyle(e).fontFamily}`;
        const size = pen.measureText('_');
        return [e.clientHeight, size.fontBoundingBoxAscent + size.fontBoundingBoxDescent] as const;
      });
    assert.ok(row >= Math.ceil(font) + 1, `a row of ${row} px cuts a font of ${font} px`);
    // What is outside of the sandbox stays as it is.
    await page.keyboard.type(`touch ${join(own.dir, 'outside')}; touch /usr/outside; echo "did $?"\n`);
    await rows(page).getByText(/did 1/).first().waitFor();
    assert.ok(!existsSync('/usr/outside'));
    assert.ok(!existsSync(join(own.dir, 'outside')));
    // A flood goes by, and a key ends it.
    await page.keyboard.type('yes flood\n');
    await rows(page).getByText('flood').nth(10).waitFor();
    if (width < 700) await page.getByRole('button', { name: 'Ctrl C' }).click();
    else await page.keyboard.press('Control+c');
    await page.keyboard.type('clear; echo "after $((1 + 1))"\n');
    await rows(page).getByText('after 2').first().waitFor();
    assert.deepEqual(await violations(page), []);
    assert.ok(
      await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
      'the page is wider than the screen',
    );
    await shots(page, `terminal-${width}`);
    // While nobody types it asks for nothing.
    const asked: string[] = [];
    page.on('request', (r) => asked.push(r.url()));
    await page.waitForTimeout(width < 700 ? 0 : 5000);
    assert.deepEqual(asked, []);
    // It ends, and says how; another one is a click away.
    await page.keyboard.type('exit 3\n');
    await state(page).getByText('ended with status').waitFor();
    assert.deepEqual(await violations(page), []);
    await page.getByRole('button', { name: 'Open another one' }).click();
    await state(page).getByText('Open.').waitFor();
    await page.keyboard.type('echo "again $((2 + 3))"\n');
    await rows(page).getByText('again 5').first().waitFor();
    assert.ok(await panel.getByRole('dialog').isVisible());
    assert.deepEqual(wrong, []);
    await context.close();
  });

test('what runs in a terminal ends with its page, and with the server', async () => {
  const gone = async (pid: number) => {
    for (
      let i = 0;
      existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
      i++
    ) {
      assert.ok(i < 400, `process ${pid} runs on`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  /** shells are the processes of pawl case shell that the server has started. */
  const shells = () =>
    readdirSync(`/proc/${own.pid()}/task`)
      .flatMap((t) =>
        readFileSync(`/proc/${own.pid()}/task/${t}/children`, 'utf8').trim().split(/\s+/).filter(Boolean).map(Number),
      )
      .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('\0shell\0'));
  const first = await opened(1440);
  await first.page.keyboard.type('setsid sleep 12345 & echo "up $((1 + 1))"\n');
  await rows(first.page).getByText('up 2').first().waitFor();
  const before = shells();
  assert.equal(before.length, 1);
  await first.page.close();
  await gone(before[0]!);
  await first.context.close();
  const second = await opened(1440);
  await second.page.keyboard.type('setsid sleep 12345 & echo "up $((1 + 1))"\n');
  await rows(second.page).getByText('up 2').first().waitFor();
  const [shell] = shells();
  await own.restart(() => gone(shell!));
  await state(second.page).getByText('the server has ended').waitFor();
  await second.page.getByRole('button', { name: 'Open another one' }).click();
  await state(second.page).getByText('Open.').waitFor();
  await second.context.close();
});

test('a task without a workspace has no terminal, and says why', async () => {
  const context = await entered(own.url, 1440);
  const page = await context.newPage();
  await page.goto(at('/board/task-002'));
  await page.getByRole('dialog', { name: 'task-002' }).getByRole('heading', { name: 'History' }).waitFor();
  assert.equal(await page.getByRole('link', { name: 'Terminal' }).count(), 0);
  await page.goto(at('/terminal/task-002'));
  await state(page)
    .getByText(/task-002 has no workspace here/)
    .waitFor();
  assert.deepEqual(await violations(page), []);
  await context.close();
});

test('nobody else opens a terminal', async () => {
  // Who was not let in sees no page, and gets no ticket.
  const nobody = await stranger();
  const page = await nobody.newPage();
  await page.goto(at('/terminal/task-001'));
  await page.getByText('This browser is not known to pawl').waitFor();
  await nobody.close();
  const { context, page: mine } = await opened(1440);
  const cookie = (await context.cookies()).map((c) => `${c.name}=${c.value}`).join('; ');
  const key = await mine.evaluate(() => localStorage.getItem('pawl.key')!);
  const ask = (headers: Record<string, string>, method = 'POST') =>
    fetch(at('/api/v1/cases/task-001/terminal'), {
      method,
      ...(method === 'POST' ? { body: '{}' } : {}),
      headers: { 'Content-Type': 'application/json', ...headers },
    });
  assert.equal((await ask({})).status, 401);
  assert.equal((await ask({ cookie })).status, 401, 'as a page of another port may ask');
  assert.equal((await ask({ cookie, 'X-Pawl-Key': key, Origin: 'http://attacker.example' })).status, 403);
  assert.equal((await ask({ cookie, 'X-Pawl-Key': key }, 'GET')).status, 404, 'to look is not to open');
  // A page of another origin, in the browser that was let in, with a ticket that it has somehow got.
  const { ticket } = (await (await ask({ cookie, 'X-Pawl-Key': key })).json()) as { ticket: string };
  const site = createServer((_, res) =>
    res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>other</title>'),
  ).listen(0, '127.0.0.1');
  await new Promise((resolve) => site.once('listening', resolve));
  const other = await context.newPage();
  await other.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
  const connect = (on: Page, address: string) =>
    on.evaluate(
      (address) =>
        new Promise<string>((resolve) => {
          const s = new WebSocket(address);
          s.onopen = () => resolve('open');
          s.onerror = () => resolve('refused');
        }),
      address,
    );
  const address = (ticket: string, key: string) =>
    at(`/api/v1/terminal?ticket=${ticket}&key=${key}`).replace('http', 'ws');
  assert.equal(await connect(other, address(ticket, key)), 'refused', 'another origin');
  assert.equal(await connect(mine, address(ticket, 'f'.repeat(64))), 'refused', 'without the key');
  assert.equal(await connect(mine, address(ticket, key)), 'open');
  assert.equal(await connect(mine, address(ticket, key)), 'refused', 'a used ticket');
  assert.equal(await connect(mine, address('', key)), 'refused', 'no ticket');
  // The page of a terminal is in no frame, and loads nothing of others.
  const answer = await context.request.get(at('/terminal/task-001'), { headers: { cookie } });
  const policy = answer.headers()['content-security-policy']!;
  assert.match(
    policy,
    /default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; .*frame-ancestors 'none'/,
  );
  assert.doesNotMatch(
    (await context.request.get(at('/board'), { headers: { cookie } })).headers()['content-security-policy']!,
    /unsafe/,
  );
  site.close();
  await context.close();
});
