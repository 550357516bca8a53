// The pages in a browser, over a real server with real runs. Needs PAWL, the
// program, and CHROMIUM, the browser.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { api, at, happened, p, quiet, runs, until, viewer, violations } from './rig';

const pages: [name: string, path: () => string, ready: (page: Page) => Promise<unknown>][] = [
  ['now', () => '/', (g) => g.getByRole('heading', { name: 'Needs you' }).waitFor()],
  ['board', () => '/board', (g) => g.getByText('Number invoices without gaps').waitFor()],
  ['board by operation', () => '/board?view=groups', (g) => g.getByText('Import of customers').first().waitFor()],
  ['case', () => '/board/task-003', (g) => g.getByRole('heading', { name: 'History' }).waitFor()],
  ['runs', () => '/runs', (g) => g.getByText('currency-format').first().waitFor()],
  ['run', () => `/runs/${runs['currency-format']}?i=1.1`, (g) => g.getByText('I read the formatter first').waitFor()],
  ['changes', () => `/runs/${runs['currency-format']}?show=changes`, (g) => g.getByText('KWD: 3').first().waitFor()],
  [
    'prompt',
    () => `/runs/${runs['currency-format']}?show=prompt`,
    (g) => g.getByText('scene-currency').first().waitFor(),
  ],
  [
    'raw output',
    () => `/runs/${runs['currency-format']}?show=log`,
    (g) => g.getByText('"type":"start"').first().waitFor(),
  ],
  ['question', () => `/runs/${runs['which-database']}`, (g) => g.getByText('The run asks you').waitFor()],
  ['running', () => `/runs/${runs['slow-import']}`, (g) => g.getByText('only it. Next is').first().waitFor()],
  ['queue', () => '/queue', (g) => g.getByText('Nothing has been queued yet').waitFor()],
  ['sprint', () => '/sprint', (g) => g.getByRole('button', { name: 'Start the sprint' }).waitFor()],
  ['review', () => '/review', (g) => g.getByText('Nothing waits for a review').waitFor()],
  ['statistics', () => '/stats', (g) => g.getByRole('heading', { name: 'Runs that ended' }).waitFor()],
  ['plan', () => '/plan', (g) => g.getByRole('heading', { name: 'From a goal to tasks' }).waitFor()],
  ['configuration', () => '/config', (g) => g.getByText('loop.safety').first().waitFor()],
  ['nothing', () => '/no/such/page', (g) => g.getByText('There is no such page').waitFor()],
];

/** weighed has a page keep nothing of the one before, and counts by address the bytes that it loads, compressed as they
 * come. The colours of a diff come after its text is read. */
async function weighed(page: Page): Promise<Map<string, number>> {
  const line = await page.context().newCDPSession(page);
  await line.send('Network.enable');
  await line.send('Network.setCacheDisabled', { cacheDisabled: true });
  const names = new Map<string, string>();
  const sizes = new Map<string, number>();
  line.on('Network.requestWillBeSent', (e) => names.set(e.requestId, e.request.url));
  line.on('Network.loadingFinished', (e) => {
    const name = new URL(names.get(e.requestId)!).pathname;
    if (!name.includes('/paint-')) sizes.set(name, (sizes.get(name) ?? 0) + e.encodedDataLength);
  });
  return sizes;
}

for (const width of [1280, 400]) {
  test(`every page at ${width} px is sound in light and dark`, async (t) => {
    const context = await viewer(width, 'light');
    const page = await context.newPage();
    const wrong = quiet(page);
    const loaded = await weighed(page);
    for (const [name, path, ready] of pages) {
      await t.test(name, async () => {
        loaded.clear();
        await page.goto(at(path()));
        await ready(page);
        const bytes = [...loaded.values()].reduce((a, b) => a + b, 0);
        assert.ok(bytes > 50_000 && bytes <= 130_000, `${bytes} bytes: ${JSON.stringify([...loaded])}`);
        assert.deepEqual(await violations(page), []);
        await page.emulateMedia({ colorScheme: 'dark' });
        assert.deepEqual(await violations(page, true), []);
        await page.emulateMedia({ colorScheme: 'light' });
        assert.ok(
          (await page.evaluate(() => document.documentElement.scrollWidth)) <= width,
          'the page is wider than its window',
        );
        if (width === 1280 && name === 'board') {
          assert.equal(
            await page.evaluate(() => ((c) => c.scrollWidth - c.clientWidth)(document.querySelector('.columns'))),
            0,
            'columns of the board are out of sight',
          );
        }
        assert.deepEqual(wrong.splice(0), []);
      });
    }
    await context.close();
  });
}

test('keys lead everywhere, and are text where text is written', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(at('/'));
  await page.getByRole('heading', { name: 'Needs you' }).waitFor();
  await page.keyboard.press('?');
  const help = page.getByRole('dialog', { name: 'Keys of this page' });
  await help.getByText('Next item that needs you').waitFor();
  await page.keyboard.press('Escape');
  await help.waitFor({ state: 'detached' });

  await page.keyboard.press('g');
  await page.keyboard.press('b');
  await page.getByText('Number invoices without gaps').waitFor();
  await page.keyboard.press('j');
  const list = page.getByRole('listbox', { name: 'Pending' });
  const first = await list.getByRole('option', { selected: true }).textContent();
  await page.keyboard.press('j');
  assert.notEqual(await list.getByRole('option', { selected: true }).textContent(), first);
  await page.keyboard.press('k');
  assert.equal(await list.getByRole('option', { selected: true }).textContent(), first);
  await page.keyboard.press('l');
  await page.getByRole('listbox', { name: 'Blocked' }).getByRole('option', { selected: true }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'task-006' }).getByText('waits for the new file format').first().waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });

  await page.keyboard.press('/');
  await page.keyboard.type('jk?search');
  assert.equal(await page.getByLabel('Filter the board').inputValue(), 'jk?search');
  assert.equal(await page.getByRole('dialog').count(), 0);
  await page.getByLabel('Filter the board').fill('#search rank');
  await page.getByText('1 task that fit').waitFor();
  await context.close();
});

test('what another does is seen at once, and takes away neither focus nor text', async () => {
  const one = await viewer(1280);
  const two = await viewer(1280);
  const [a, b] = [await one.newPage(), await two.newPage()];
  await a.goto(at('/board'));
  await b.goto(at('/board'));
  await a.getByText('Number invoices without gaps').waitFor();
  await b.getByText('Number invoices without gaps').waitFor();

  // One viewer writes, and has chosen a case; the other blocks a case by key.
  await a.getByLabel('Filter the board').focus();
  await a.keyboard.type('e');
  await b.getByRole('option', { name: /task-002/ }).click();
  await b.getByRole('button', { name: /^Block/ }).waitFor();
  await b.keyboard.press('b');
  await b.getByLabel('What must happen first?').fill('The archive moves first');
  await b.keyboard.press('Control+Enter');
  await a
    .getByRole('listbox', { name: 'Blocked' })
    .getByRole('option', { name: /task-002/ })
    .waitFor();
  assert.equal(await a.evaluate(() => (document.activeElement as HTMLInputElement).value), 'e');

  // The list has the focus while its active row goes to another column.
  await a.getByLabel('Filter the board').fill('');
  await a.getByRole('option', { name: /task-009/ }).click();
  await a.keyboard.press('Escape');
  await a.getByRole('dialog').waitFor({ state: 'detached' });
  p.run('case', 'add', 'Come first', '--priority', '5');
  await a.getByRole('option', { name: /Come first/ }).waitFor();
  assert.equal(
    await a
      .getByRole('listbox', { name: 'Pending' })
      .getByRole('option', { selected: true, name: /task-009/ })
      .count(),
    1,
  );
  assert.equal(await a.evaluate(() => document.activeElement?.getAttribute('role')), 'listbox');
  await one.close();
  await two.close();
});

test('tasks that wait change places by mouse and by key', async () => {
  const ids = ['first', 'second', 'third'].map(
    (name) => /task-\d+/.exec(p.run('case', 'add', `Order: the ${name}`, '--priority', '-5'))![0],
  );
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(at('/board?q=Order'));
  const rows = page.getByRole('listbox', { name: 'Pending' }).getByRole('option');
  const order = async (...names: string[]) => {
    await page.waitForFunction(
      (names) =>
        [...document.querySelectorAll('[role=listbox][aria-label=Pending] [role=option]')]
          .map((o) => /Order: the (\w+)/.exec(o.textContent)?.[1])
          .join() === names.join(),
      names,
    );
    const want = names.map((n) => ids[['first', 'second', 'third'].indexOf(n)]).join();
    await until<{ cases: { id: string; priority: number }[] }>(
      page,
      '/api/v1/cases?q=Order',
      (a) =>
        a.cases
          .sort((a, b) => b.priority - a.priority || (a.id < b.id ? -1 : 1))
          .map((c) => c.id)
          .join() === want,
    );
  };
  await rows.nth(2).waitFor();
  await rows.nth(2).dragTo(rows.nth(0));
  await page.getByText(`${ids[2]} goes before ${ids[0]}`).waitFor();
  await order('third', 'first', 'second');
  await rows.nth(0).dragTo(rows.nth(1));
  await order('first', 'third', 'second');
  await rows.nth(2).click();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('<');
  await order('first', 'second', 'third');
  await page.keyboard.press('>');
  await order('first', 'third', 'second');
  // What takes effect is offered in the list, too: the task whose place changed is removed by key.
  await page.keyboard.press('Delete');
  await page.getByRole('button', { name: 'Remove it' }).click();
  await rows.nth(2).waitFor({ state: 'detached' });
  for (const id of [ids[0]!, ids[2]!]) p.run('case', 'rm', id);
  await context.close();
});

test('a drag asks for the move that leads there', async () => {
  const context = await viewer(1920);
  const page = await context.newPage();
  await page.goto(at('/board'));
  await page.getByRole('option', { name: /task-010/ }).dragTo(page.getByRole('region', { name: 'Deferred' }));
  await page
    .getByRole('listbox', { name: 'Deferred' })
    .getByRole('option', { name: /task-010/ })
    .waitFor();
  await page.getByRole('option', { name: /task-010/ }).dragTo(page.getByRole('region', { name: 'Done' }));
  await page.getByText('cannot be dragged to').waitFor();
  await context.close();
});

test('after the server was away nothing is missed and nothing is there twice', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(at('/board'));
  await page.getByText('Number invoices without gaps').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await p.restart(() => p.run('case', 'add', 'Added while it was away'));
  await page.getByRole('option', { name: /Added while it was away/ }).waitFor();
  p.run('case', 'add', 'Added after it came back');
  await page.getByRole('option', { name: /Added after it came back/ }).waitFor();
  assert.equal(await page.getByRole('option', { name: /Added while it was away/ }).count(), 1);
  await context.close();
});

test('a question is answered where it stands', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(at('/'));
  await page.getByRole('button', { name: /which-database/ }).click();
  await page.getByLabel('Your answer in words').fill('The warehouse stays.');
  await page.getByRole('button', { name: 'Answer', exact: true }).click();
  await happened(page, runs['which-database'], 'answered');
  await context.close();
});

test('what is lost is asked about first, and said', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(at(`/runs/${runs['slow-import']}`));
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  await page.keyboard.press('x');
  const dialog = page.getByRole('dialog', { name: /Stop slow-import/ });
  await dialog.getByText('is lost').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal((await api(page, `/api/v1/runs/${runs['slow-import']}`)).status, 'running');
  await context.close();
});

test('what an agent wrote is laid out, with what its tools returned', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(at(`/runs/${runs['currency-format']}?i=1.1`));
  const talk = page.getByRole('log');
  await talk.locator('strong', { hasText: /^before$/ }).waitFor();
  await talk.locator('code', { hasText: /^money.ts$/ }).waitFor();
  await talk.getByRole('listitem').filter({ hasText: 'dinars lose one' }).waitFor();
  await talk.locator('pre code', { hasText: /^return amount.toFixed\(2\);$/ }).waitFor();
  await talk.getByText('Result: src/money.ts:32').click();
  await talk.locator('pre', { hasText: 'src/money.ts:32: return' }).waitFor();
  await page.goto(at(`/runs/${runs['currency-format']}?i=2.1`));
  await talk.getByRole('cell', { name: 'KWD, BHD' }).waitFor();
  await page.goto(at(`/runs/${runs['registry-access']}`));
  await talk.getByText('This command requires you to be logged in').last().waitFor();
  await context.close();
});

test('texts of others are text', async () => {
  p.run(
    'case',
    'add',
    '<img src=x onerror=alert(1)> \u202egnp.exe',
    '--description',
    '<script>document.title="owned"</script>',
  );
  const context = await viewer(1280);
  const page = await context.newPage();
  const wrong = quiet(page);
  await page.goto(at('/board?q=onerror'));
  await page.getByText('<img src=x onerror=alert(1)> ⟦RLO⟧gnp.exe').first().click();
  await page.getByText('<script>document.title="owned"</script>').waitFor();
  await page.goto(at(`/runs/${runs.hostile}`));
  await page.getByText('<script>document.title=').first().waitFor();
  await page.getByText('click (javascript:alert(1))').waitFor();
  assert.equal(
    await page.getByRole('link', { name: 'x', exact: true }).getAttribute('rel'),
    'noopener noreferrer nofollow',
  );
  for (const show of ['changes', 'log', 'prompt']) {
    await page.goto(at(`/runs/${runs.hostile}?show=${show}`));
    await page
      .getByRole('region', { name: show === 'changes' ? 'Changes' : show === 'log' ? 'agent.out' : 'prompt.md' })
      .waitFor();
  }
  assert.equal(
    await page.evaluate(() => document.querySelectorAll('main script, main img, main b:not([class])').length),
    0,
  );
  assert.ok(!(await page.title()).includes('owned'));
  assert.deepEqual(wrong, []);
  await context.close();
});
