// A page on which nothing happens asks the server for nothing, and one whose
// server is away asks seldom.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BrowserContext } from 'playwright-core';
import { make } from './project';
import { api, entered, quiet } from './rig';

/** asked counts by address what the pages of a browser ask for, but for the one stream of events. */
function asked(context: BrowserContext): Map<string, number> {
  const counts = new Map<string, number>();
  context.on('request', (r) => {
    const path = new URL(r.url()).pathname;
    if (path !== '/api/v1/events') counts.set(path, (counts.get(path) ?? 0) + 1);
  });
  return counts;
}

test('an idle page asks for nothing, whichever it is', async () => {
  const own = await make(process.env.PAWL ?? 'pawl');
  const context = await entered(own.url, 1280);
  try {
    own.run('run', 'hostile', '-q');
    own.run('case', 'add', 'Idle');
    const first = await context.newPage();
    await first.goto(own.url);
    const { runs } = (await api(first, '/api/v1/runs')) as { runs: { run: string }[] };
    const { cases } = (await api(first, '/api/v1/cases')) as { cases: { id: string }[] };
    const tabs = ['output', 'changes', 'prompt', 'log'].map((tab) => `/runs/${runs[0]!.run}?show=${tab}`);
    const paths = ['/', '/board', `/board/${cases[0]!.id}`, '/runs', ...tabs, '/queue', `/compare?a=${runs[0]!.run}&b=${runs[0]!.run}.1`, '/review', '/sprint', '/stats', '/config'];
    const wrong: string[][] = [];
    for (const path of paths) {
      const page = await context.newPage();
      wrong.push(quiet(page));
      await page.goto(new URL(path, own.url).href);
      await page.getByText('Live', { exact: true }).waitFor();
      await page.locator('main h1, main h2').first().waitFor();
    }
    const counts = asked(context);
    // What pages load at their start comes first, however long it takes. A page that never ends has no such five seconds.
    for (let i = 0; i < 12 && (i === 0 || counts.size > 0); i++) {
      counts.clear();
      await first.waitForTimeout(5000);
    }
    assert.deepEqual([...counts], []);
    assert.deepEqual(wrong.flat(), []);

    // Without a server nothing is asked for again and again.
    // It is counted before the server is back: then all is loaded anew.
    let sum = 0;
    await own.restart(async () => {
      await first.waitForTimeout(5000);
      sum = [...counts.values()].reduce((a, b) => a + b, 0);
    });
    assert.ok(sum <= paths.length, `${sum} requests in 5 s without a server: ${JSON.stringify([...counts])}`);
  } finally {
    await context.close();
    await own.close();
  }
});
