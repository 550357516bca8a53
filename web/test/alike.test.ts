// Every action by key, by mouse and by the API alike. The server's answers to
// actions are made up here, so that the same one can be asked for again: what is
// compared is what the page asks of the server.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { at, runs, viewer } from './rig';

interface Action {
  key: string;
  /** button is the name of what does the same by mouse. */
  button: RegExp;
  /** asks: a question comes first, and its fields are filled in with what is needed. */
  asks?: boolean;
  does: string;
  /** leads: the page goes elsewhere when it is done. */
  leads?: boolean;
}
const action = (key: string, button: RegExp, does: string, asks = false, leads = false): Action => ({
  key,
  button,
  does,
  asks,
  leads,
});

const all = [
  'retry',
  'unblock',
  'block',
  'defer',
  'undefer',
  'start',
  'approve',
  'redo',
  'reject',
  'extend',
  'rollback',
  'clean',
  'edit',
  'remove',
];
const move = 'POST /api/v1/cases/{id}/actions';
const run = '/api/v1/runs/{run}';
const autopilot = '/api/v1/autopilot';

/** Each place, as the server would have it be, with what can be done there. */
const places: {
  path: () => string;
  ready: RegExp;
  change?: (answer: Record<string, any>, path: string) => void;
  before?: (page: Page) => Promise<unknown>;
  actions: Action[];
}[] = [
  {
    path: () => '/board/task-003',
    ready: /^History$/,
    change: (a, path) => path.startsWith('/api/v1/cases/task-003') && (a.actions = all.filter((x) => x !== 'undefer')),
    actions: [
      action('r', /^Retry/, move),
      action('u', /^Unblock/, move),
      action('b', /^Block/, move, true),
      action('d', /^Defer/, move),
      action('s', /^Start/, move),
      action('A', /^Approve/, move),
      action('o', /^Redo/, move, true),
      action('J', /^Reject/, move, true),
      action('e', /^Edit/, 'PATCH /api/v1/cases/{id}', true),
      action('+', /^More iterations/, 'POST /api/v1/cases/{id}/extend', true),
      action('R', /^Roll back/, 'POST /api/v1/cases/{id}/rollback', true),
      action('X', /^Clean/, 'POST /api/v1/cases/{id}/clean', true),
      action('Delete', /^Remove/, 'DELETE /api/v1/cases/{id}', true, true),
    ],
  },
  {
    path: () => `/runs/${runs['slow-import']}?i=1.1`,
    ready: /^Iteration 1$/,
    change: (a, path) => path.endsWith(runs['slow-import']!) && (a.actions = ['pause', 'stop', 'message', 'raise']),
    actions: [
      action('Space', /^Pause/, `POST ${run}/pause`),
      action('m', /^Message/, `POST ${run}/message`, true),
      action('x', /^Stop/, `POST ${run}/stop`, true),
      action('+', /^Raise limits/, `POST ${run}/resume`, true),
    ],
  },
  {
    path: () => `/runs/${runs['slow-import']}`,
    ready: /^Iteration 1$/,
    change: (a, path) => path.endsWith(runs['slow-import']!) && Object.assign(a, { kind: 'task', actions: ['stop'] }),
    actions: [action('r', /^Give slot away/, `POST ${run}/redirect`, true)],
  },
  {
    path: () => `/runs/${runs['retry-webhooks']}?i=2.1`,
    ready: /^Iteration 2$/,
    change: (a, path) =>
      path.endsWith(runs['retry-webhooks']!)
        ? (a.actions = ['resume', 'raise', 'rollback', 'apply', 'discard'])
        : path.endsWith('/snapshots') && (a.undo = true),
    actions: [
      action('r', /^Resume/, `POST ${run}/resume`),
      action('Space', /^Resume/, `POST ${run}/resume`),
      action('+', /^Raise limits/, `POST ${run}/resume`, true),
      action('a', /^Apply/, `POST ${run}/apply`, true),
      action('D', /^Discard/, `POST ${run}/discard`, true),
      action('R', /^Roll back to before it/, `POST ${run}/rollback`, true),
      action('u', /^Undo rollback/, `POST ${run}/rollback`),
    ],
  },
  {
    path: () => '/',
    ready: /^Needs you/,
    actions: [
      action('n', /^Start a procedure/, 'POST /api/v1/runs', true),
      action('m', /^Message$/, `POST ${run}/message`, true),
      action('x', /^Stop$/, `POST ${run}/stop`, true),
      action('Space', /^Pause$/, `POST ${run}/pause`),
    ],
  },
  { path: () => '/runs', ready: /^Runs$/, actions: [action('n', /^Start a procedure/, 'POST /api/v1/runs', true)] },
  {
    path: () => '/board',
    ready: /^Pending/,
    actions: [
      action('n', /^Add a task/, 'POST /api/v1/cases', true),
      action('I', /^Import/, 'POST /api/v1/cases/import', true),
    ],
  },
  {
    path: () => '/queue',
    ready: /^Merge queue$/,
    change: (a, path) => path.endsWith('/queue') && (a.queues = [queue()]),
    before: (page) => page.getByRole('option', { name: /task-001/ }).click(),
    actions: [
      action('h', /^Hold/, 'POST /api/v1/queue/entries/{id}/actions', true),
      action('r', /^Try again/, 'POST /api/v1/queue/entries/{id}/actions'),
      action('X', /^Drop/, 'POST /api/v1/queue/entries/{id}/actions', true),
      action('L', /^Land now/, 'POST /api/v1/queue/actions'),
      action('b', /^Find what made a command red/, 'POST /api/v1/cases/bisect', true, true),
      action('Space', /^Pause the queue/, 'POST /api/v1/queue/actions', true),
    ],
  },
  {
    path: () => '/review',
    ready: /^Review$/,
    change: (a, path) => {
      const item = {
        id: 'task-001',
        type: 'task',
        title: 'Work',
        tags: [],
        needs: [],
        actions: ['approve', 'redo', 'reject'],
        status: 'review',
      };
      if (path.endsWith('/inbox'))
        a.entries = [{ kind: 'review', title: 'task-001: Work', why: '', since: new Date().toISOString(), case: item }];
      if (path.endsWith('/reviews')) a.reviews = [];
    },
    actions: [action('A', /^Approve/, move), action('R', /^Redo/, move, true), action('X', /^Reject/, move, true)],
  },
  { path: () => '/sprint', ready: /^Sprint$/, actions: [action('Enter', /^Start the sprint/, 'POST /api/v1/sprints')] },
  {
    path: () => '/sprint',
    ready: /^Sprint$/,
    change: (a, path) =>
      path.endsWith('/autopilot') &&
      Object.assign(a, { running: true, phase: 'running', actions: ['pause', 'stop', 'mode'] }),
    actions: [
      action('Space', /^Pause/, `POST ${autopilot}/pause`),
      action('x', /^Stop/, `POST ${autopilot}/stop`, true),
      action('m', /^Choose tasks yourself/, `POST ${autopilot}/mode`),
    ],
  },
  {
    path: () => '/sprint',
    ready: /^Sprint$/,
    change: (a, path) =>
      path.endsWith('/autopilot') &&
      Object.assign(a, { running: true, phase: 'paused', actions: ['resume', 'stop', 'mode'] }),
    actions: [action('Space', /^Resume/, `POST ${autopilot}/resume`)],
  },
  {
    path: () => '/sprint',
    ready: /^Sprint$/,
    change: (a, path) =>
      path.endsWith('/autopilot') && Object.assign(a, { running: true, phase: 'running', next: { no_ready: true } }),
    actions: [action('d', /^Drop/, 'DELETE /api/v1/sprints/next')],
  },
];

const queue = () => ({
  target: 'main',
  working: 0,
  doing: '',
  stopped: '',
  cause: '',
  window: 1,
  landed: [],
  actions: ['pause', 'land'],
  entries: [
    {
      id: 'task-001',
      title: 'Work',
      status: 'parked',
      why: '',
      commit: 'c0ffee',
      run: '',
      priority: 0,
      needs: [],
      attempts: 0,
      problem: '',
      files: [],
      red: '',
      conflict_ahead: [],
      pull_request: '',
      added_at: new Date().toISOString(),
      until: null,
      then: '',
      actions: ['hold', 'drop', 'retry'],
    },
  ],
});

test('what a key does a button does too, and the API', async (t) => {
  const api = (
    JSON.parse(readFileSync('../docs/openapi.json', 'utf8')) as { paths: Record<string, Record<string, unknown>> }
  ).paths;
  const known = Object.entries(api).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter((m) => m !== 'get')
      .map((m) => `${m.toUpperCase()} ${path}`),
  );
  const named = (method: string, path: string) =>
    known.find((k) =>
      new RegExp(`^${k.replaceAll('+', '\\+').replace(/\{\w+\}/g, '[^/]+')}$`).test(`${method} ${path}`),
    ) ?? `${method} ${path}`;
  const done = new Set<string>();
  const context = await viewer(1280);
  const page = await context.newPage();
  let asked: { does: string; body: unknown }[] = [];
  let change: (typeof places)[number]['change'];
  await page.route('**/api/v1/**', async (route) => {
    const request = route.request();
    const path = new URL(request.url()).pathname;
    if (request.method() === 'GET') {
      if (!change || path === '/api/v1/events') return route.continue();
      try {
        const response = await route.fetch();
        const answer = (await response.json()) as Record<string, unknown>;
        change?.(answer, path);
        return await route.fulfill({ response, json: answer });
      } catch {
        return; // who asked is gone: another page is opened
      }
    }
    asked.push({ does: named(request.method(), path), body: request.postDataJSON() as unknown });
    return route.fulfill({
      json: {
        message: 'Done.',
        lines: [],
        ids: [],
        removed: '',
        id: 'task-003',
        type: 'task',
        title: 'x',
        tags: [],
        needs: [],
        actions: all,
        status: 'pending',
      },
    });
  });
  /** agree fills in what must be filled in, and says yes. */
  const agree = async () => {
    const form = page.locator('dialog form');
    await form.waitFor();
    for (const field of await form.locator('[required]').all()) await field.fill('Words');
    const rests = form.getByLabel(/^Its last run/); // other tests may have left one
    if (await rests.isVisible()) await rests.selectOption('yes');
    await form.locator('button[type=submit]').click();
    await form.waitFor({ state: 'detached' });
  };
  for (const place of places) {
    const open = async () => {
      change = place.change;
      await page.goto(at(place.path()));
      await page.getByRole('heading', { name: place.ready }).first().waitFor();
      await place.before?.(page);
    };
    await open();
    for (const d of place.actions) {
      await t.test(`${place.path().replace(/^\/runs\/\w+/, '/runs/…')} ${d.key}`, async () => {
        const seen: (typeof asked)[] = [];
        for (const how of ['key', 'mouse'] as const) {
          // Nothing has changed, so the page is as it was, unless the action leads away from it.
          if (new URL(page.url()).pathname !== new URL(at(place.path())).pathname) await open();
          await page.evaluate(() => (document.activeElement as HTMLElement).blur());
          const button = page.locator('main, dialog').getByRole('button', { name: d.button }).first();
          await button.waitFor();
          asked = [];
          // It is in the list when it is answered.
          const sent = page.waitForResponse((r) => r.request().method() !== 'GET');
          if (how === 'key') await page.keyboard.press(d.key);
          else await button.click();
          if (d.asks) await agree();
          await sent;
          if (d.leads) await page.waitForURL((url) => url.pathname !== place.path());
          seen.push(asked);
        }
        assert.deepEqual(seen[0], seen[1]);
        assert.deepEqual(
          seen[0]!.map((a) => a.does),
          [d.does],
        );
        done.add(d.does);
      });
    }
  }
  // What is not done here: answers have keys of their own (work.test.ts), conflicts are settled in settle.test.ts, a repository is opened in repositories.test.ts, a terminal and a preview open a tab of their own (terminal.test.ts, preview.test.ts), a plan is worked in plan.test.ts, the next sprint is planned and slots are changed in work.test.ts, and the autopilot without an aim is a sprint until nothing is ready.
  assert.deepEqual(
    known.filter((k) => !done.has(k)),
    [
      'POST /api/v1/autopilot/start',
      'POST /api/v1/autopilot/slots',
      'POST /api/v1/cases/{id}/preview',
      'POST /api/v1/cases/{id}/terminal',
      'DELETE /api/v1/proposal',
      'POST /api/v1/proposal',
      'POST /api/v1/proposal/add',
      'POST /api/v1/queue/entries/{id}/conflict',
      'POST /api/v1/repositories/{id}/open',
      `POST ${run}/answer`,
      `POST ${run}/conflicts`,
      `POST ${run}/review`,
      'POST /api/v1/sprints/next',
    ].sort((a, b) => known.indexOf(a) - known.indexOf(b)),
  );
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await context.close();
});
