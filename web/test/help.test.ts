// Every key that ? shows, on every page and in the panel of a case, does
// something in one of the tests. It comes last.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { at, help, listed, named, pressed, runs, viewer } from './rig';

test('every key that ? shows is pressed by a test', async () => {
  const context = await viewer(1280);
  const page = await context.newPage();
  for (const [path, title] of [
    ['/', 'Now'],
    ['/board', 'Board'],
    ['/board/task-003', 'task-003'],
    ['/runs', 'Runs'],
    [`/runs/${runs['slow-import']}`, 'slow-import'],
    ['/queue', 'Merge queue'],
    ['/review', 'Review'],
    ['/sprint', 'Sprint'],
    ['/stats', 'Statistics'],
    ['/config', 'Configuration'],
  ] as const) {
    await page.goto(at(path));
    await page.getByRole('heading', { name: title, exact: true }).first().waitFor();
    await help(page);
  }
  // Groups that several pages have, and the panel of any task, count wherever a key of theirs was pressed.
  const kind = (where: string) => where.replace(/^Task .*/, 'Task').replace(/^runs\/.*/, 'run');
  const did = new Set([...pressed].map((one) => one.split('\t')).map(([where, key]) => `${kind(where!)}\t${key}`));
  const anywhere = new Set([...pressed].map((one) => one.split('\t')[1]));
  const missing = [...listed]
    .map((one) => one.split('\t') as [string, string, string])
    .filter(([group, where, key]) =>
      ['Everywhere', 'The question'].includes(group) ? !anywhere.has(key) : !did.has(`${kind(where)}\t${key}`),
    );
  assert.deepEqual(
    [
      ...new Set(
        missing.map(([group, , key]) => `${group.replace(/^Task .*/, 'Task')}: ${key === ' ' ? 'Space' : key}`),
      ),
    ],
    [],
  );
  // docs/web.md has the same keys.
  const rows = readFileSync('../docs/web.md', 'utf8')
    .split('\n## Keys\n')[1]!
    .split('\n## ')[0]!
    .split('\n')
    .slice(5)
    .filter((l) => l.startsWith('| '));
  const told = new Map(
    rows
      .map((l) => l.split('|').map((c) => c.trim()))
      .map(([, where, keys]) => [where!, [...keys!.matchAll(/`([^`]+)`/g)].map((m) => named[m[1]!] ?? m[1]!)]),
  );
  const shown = new Map<string, string[]>();
  for (const one of listed) {
    const [group, , key] = one.split('\t') as [string, string, string];
    const name = group.replace(/^Task .*/, 'Task');
    shown.set(name, [...(shown.get(name) ?? []), key]);
  }
  const some = (keys: string[]) => [...new Set(keys)].filter((k) => !/^[2-9]$/.test(k)).sort(); // 1 to 9 are named by the first
  assert.deepEqual(
    Object.fromEntries([...told].map(([name, keys]) => [name, some(keys)])),
    Object.fromEntries([...told.keys()].map((name) => [name, some(shown.get(name) ?? [])])),
  );
  assert.deepEqual(
    [...shown.keys()].filter((name) => !told.has(name)),
    [],
  );
  assert.ok(listed.size > 100, `only ${listed.size} keys are shown`);
  await context.close();
});
