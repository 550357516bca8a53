// A page on which nothing happens asks the server for nothing, and one whose
// server is away asks seldom.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { BrowserContext } from 'playwright-core';
import { make, type Project } from './project';
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

/** conflict makes task-002 one that a person must settle: main deletes what it changes. */
function conflict(p: Project): void {
  p.git(['switch', '-qc', 'mine']);
  writeFileSync(join(p.dir, 'gone.txt'), 'changed\n');
  p.git(['commit', '-qam', 'change']);
  p.git(['switch', '-q', 'main']);
  p.git(['rm', '-q', 'gone.txt']);
  p.git(['commit', '-qm', 'delete']);
  p.run('case', 'add', 'Settle it');
  p.run('queue', 'add', 'task-002', '--commit', 'mine');
  p.run('queue', 'land');
}

test('an idle page asks for nothing, whichever it is', async () => {
  const own = await make(process.env.PAWL ?? 'pawl', {
    'flow.yaml': 'steps:\n  - {id: one, run: "echo one"}\n',
    'gone.txt': 'here\n',
  });
  const context = await entered(own.url, 1280);
  try {
    own.run('run', 'flow.yaml', '-q');
    own.run('run', 'hostile', '-q');
    own.run('case', 'add', 'Idle');
    conflict(own);
    const first = await context.newPage();
    await first.goto(own.url);
    const { runs } = (await api(first, '/api/v1/runs')) as { runs: { run: string; kind: string }[] };
    const flow = runs.find((r) => r.kind === 'workflow')!.run;
    const { cases } = (await api(first, '/api/v1/cases')) as { cases: { id: string }[] };
    const tabs = ['output', 'changes', 'prompt', 'log'].map((tab) => `/runs/${runs[0]!.run}?show=${tab}`);
    const paths = [
      '/',
      '/wall',
      '/board',
      '/board?view=groups',
      '/board?view=needs',
      `/board/${cases[0]!.id}`,
      '/runs',
      `/runs/${flow}`,
      ...tabs,
      '/queue',
      '/queue/task-002',
      '/plan',
      `/compare?a=${runs[0]!.run}&b=${runs[0]!.run}.1`,
      `/compare?a=${runs[0]!.run}&b=${runs[0]!.run}.1&show=prompt`,
      '/review',
      '/sprint',
      '/stats',
      '/config',
    ];
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
