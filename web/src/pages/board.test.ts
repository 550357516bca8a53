import { describe, expect, test } from 'vitest';
import type { Case } from '../lib/api';
import {
  columnOf,
  columns,
  groupByOperation,
  linkedCases,
  moveTo,
  newPlace,
  reasonNotToMove,
  sortIntoColumns,
} from './board';

const task = (id: string, more: Partial<Case> = {}) =>
  ({
    id,
    title: `Title of ${id}`,
    type: 'task',
    status: 'pending',
    ready: true,
    priority: 0,
    score: 0,
    parent: '',
    needs: [],
    actions: [],
    updated_at: '2026-01-01T00:00:00Z',
    ...more,
  }) as unknown as Case;
const ids = (list: Case[] | undefined) => (list ?? []).map((c) => c.id).join(' ');

describe('columns', () => {
  test('each status has one', () => {
    expect(Object.keys(columnOf).sort()).toEqual(
      ['active', 'blocked', 'deferred', 'done', 'failed', 'pending', 'review', 'timeout'].sort(),
    );
    expect(new Set(columns.map((c) => c.id)).size).toBe(columns.length);
  });

  test('what can start stands first, then priority, then score', () => {
    const by = sortIntoColumns([
      task('waits', { ready: false, priority: 9 }),
      task('low', { priority: 1, score: 5 }),
      task('high', { priority: 2 }),
      task('scored', { priority: 1, score: 7 }),
    ]);
    expect(ids(by.pending)).toBe('high scored low waits');
  });

  test('what was done last stands first, and operations are in no column', () => {
    const by = sortIntoColumns([
      task('old', { status: 'done', updated_at: '2026-01-01T00:00:00Z' }),
      task('new', { status: 'done', updated_at: '2026-01-02T00:00:00Z' }),
      task('op', { type: 'operation' }),
    ]);
    expect(ids(by.done)).toBe('new old');
    expect(Object.values(by).flat()).toHaveLength(2);
  });

  test('a status of a newer server is shown among the pending', () => {
    expect(ids(sortIntoColumns([task('new', { status: 'dreaming' as Case['status'] })]).pending)).toBe('new');
  });
});

describe('the list by operation', () => {
  const operation = task('op-1', { type: 'operation', title: 'Checkout', children: 5, children_done: 3 });
  const empty = task('op-2', { type: 'operation', title: 'Empty', children: 0, children_done: 0 });
  const tasks = [
    operation,
    task('a', { parent: 'op-1' }),
    task('b', { status: 'done' }),
    task('c', { parent: 'op-gone' }),
    task('d', { parent: 'op-1' }),
  ];
  const keys = (closed: string[], whole: boolean, of = tasks) =>
    groupByOperation(of, [operation, empty], new Set(closed), whole).map((e) => e.key);

  test('tasks stand below theirs, and those of none at the end', () => {
    expect(keys([], true)).toEqual(['op op-1', 'a', 'd', 'op op-2', 'op ', 'b', 'c']);
  });
  test('a closed operation shows its line alone', () => {
    expect(keys(['op-1', ''], true)).toEqual(['op op-1', 'op op-2', 'op ']);
  });
  test('under a filter there is no operation without a task', () => {
    expect(keys([], false, [tasks[2]!])).toEqual(['op ', 'b']);
  });
  test('the server counts the tasks of an operation, also those that a filter hides', () => {
    const heads = groupByOperation(tasks, [operation], new Set(), false).filter((e) => e.head);
    expect(heads.map((e) => [e.title, e.done, e.all])).toEqual([
      ['Checkout', 3, 5],
      ['In no operation', 1, 2],
    ]);
  });
});

test('linked are those that need and those that are needed', () => {
  expect(ids(linkedCases([task('a', { needs: ['b'] }), task('b'), task('c')]))).toBe('a b');
});

describe('dragging', () => {
  test('a column takes a case by the first move that it has', () => {
    expect(moveTo({ actions: ['redo', 'retry'] }, 'pending')).toBe('retry');
    expect(moveTo({ actions: ['reject'] }, 'blocked')).toBe('reject');
    expect(moveTo({ actions: ['start'] }, 'pending')).toBeUndefined();
    expect(moveTo({ actions: ['retry', 'start', 'block', 'defer'] }, 'done')).toBeUndefined();
  });
  test('where it cannot go, the message says why', () => {
    expect(reasonNotToMove(task('t-1'), 'done')).toMatch(/t-1 cannot be dragged to Done: pawl moves tasks there/);
    expect(reasonNotToMove(task('t-1', { status: 'done' }), 'timeout')).toMatch(
      /At a limit: a task that is done cannot/,
    );
  });
  test('a task has its place among those that are as ready', () => {
    const list = [task('a'), task('b'), task('c'), task('x', { ready: false })];
    expect(newPlace(list, list[0]!, 1)).toMatchObject({ from: 0, at: 1 });
    expect(newPlace(list, list[2]!, 'a')).toMatchObject({ from: 2, at: 0 });
    expect(ids(newPlace(list, list[2]!, 'a')?.list)).toBe('a b c');
    expect(newPlace(list, list[0]!, -1)).toBeUndefined();
    expect(newPlace(list, list[2]!, 1)).toBeUndefined();
    expect(newPlace(list, list[0]!, 'x')).toBeUndefined();
    expect(newPlace(list, list[0]!, 'a')).toBeUndefined();
  });
});
