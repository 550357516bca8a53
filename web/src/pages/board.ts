// What the board decides: which case stands where, and which move leads to a column.

import type { Move } from '../lib/actions';
import type { Case } from '../lib/api';
import { caseLook } from '../lib/status';

/** Column is a status, or two that mean the same to a person. */
export interface Column {
  id: string;
  label: string;
  holds: Case['status'][];
}

export const columns: Column[] = [
  { id: 'pending', label: 'Pending', holds: ['pending'] },
  { id: 'active', label: 'Active', holds: ['active'] },
  { id: 'blocked', label: 'Blocked', holds: ['blocked'] },
  { id: 'review', label: 'Review', holds: ['review'] },
  { id: 'done', label: 'Done', holds: ['done'] },
  { id: 'failed', label: 'Failed', holds: ['failed'] },
  { id: 'timeout', label: 'At a limit', holds: ['timeout'] },
  { id: 'deferred', label: 'Deferred', holds: ['deferred'] },
];

/** columnOf has the column of each status. */
export const columnOf = Object.fromEntries(columns.flatMap((c) => c.holds.map((s) => [s, c.id]))) as Record<
  string,
  string
>;

/** sortIntoColumns gives the tasks of each column in order: ready ones first, and the last done first. */
export function sortIntoColumns(cases: Case[]): Record<string, Case[]> {
  const by: Record<string, Case[]> = Object.fromEntries(columns.map((c) => [c.id, []]));
  for (const c of cases) if (c.type === 'task') by[columnOf[c.status] ?? 'pending']!.push(c);
  by.pending!.sort((a, b) => Number(b.ready) - Number(a.ready) || b.priority - a.priority || b.score - a.score);
  by.done!.sort((a, b) => (a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at ? -1 : 0));
  return by;
}

/** Entry is a line of the list by operation. */
export type Entry =
  | { key: string; head: true; title: string; operation: Case | null; done: number; all: number }
  | { key: string; head: false; item: Case };

/**
 * groupByOperation lists the tasks below their operations, and last those that are in none. A task in a closed
 * operation is not shown; an operation without a task is, where the whole board is shown.
 */
export function groupByOperation(
  tasks: Case[],
  operations: Case[],
  closed: ReadonlySet<string>,
  wholeBoard: boolean,
): Entry[] {
  const byParent = new Map<string, Case[]>();
  for (const c of tasks) {
    if (c.type !== 'task') continue;
    const list = byParent.get(c.parent);
    if (list) list.push(c);
    else byParent.set(c.parent, [c]);
  }
  const out: Entry[] = [];
  const add = (o: Case | null, list: Case[]) => {
    const id = o?.id ?? '';
    out.push({
      key: `op ${id}`,
      head: true,
      title: o ? o.title : 'In no operation',
      operation: o,
      done: o ? o.children_done : list.filter((c) => c.status === 'done').length,
      all: o ? o.children : list.length,
    });
    if (!closed.has(id)) for (const item of list) out.push({ key: item.id, head: false, item });
  };
  for (const o of operations) {
    const list = byParent.get(o.id);
    if (list || wholeBoard) add(o, list ?? []);
    byParent.delete(o.id);
  }
  const rest = [...byParent.values()].flat();
  if (rest.length > 0) add(null, rest);
  return out;
}

/** linkedCases are those that need others, and those that are needed. */
export function linkedCases(cases: Case[]): Case[] {
  const needed = new Set(cases.flatMap((c) => c.needs));
  return cases.filter((c) => c.needs.length > 0 || needed.has(c.id));
}

/** moveTo is the move that leads a case to a column; undefined where there is none. */
export function moveTo(c: Pick<Case, 'actions'>, column: string): Move | undefined {
  const wanted: Record<string, Move[]> = {
    pending: ['retry', 'unblock', 'undefer', 'redo', 'revert'],
    active: ['start'],
    blocked: ['block', 'reject'],
    deferred: ['defer'],
  };
  return (wanted[column] ?? []).find((m) => c.actions.includes(m));
}

/** reasonNotToMove says why a case cannot be dragged to a column. */
export function reasonNotToMove(c: Pick<Case, 'id' | 'status'>, column: string): string {
  const label = columns.find((one) => one.id === column)?.label ?? column;
  const why = ['review', 'done', 'failed'].includes(column)
    ? 'pawl moves tasks there itself, when their work ends.'
    : `a task that is ${caseLook(c.status).word} cannot be moved there.`;
  return `${c.id} cannot be dragged to ${label}: ${why}`;
}

/**
 * newPlace is where a pending task comes among those that are as ready as it is: by so many places, or to the place
 * of another. It is undefined where nothing moves.
 */
export function newPlace(
  pending: Case[],
  c: Case,
  to: number | string,
): { list: Case[]; from: number; at: number } | undefined {
  const list = pending.filter((o) => o.ready === c.ready);
  const from = list.findIndex((o) => o.id === c.id);
  const at = typeof to === 'number' ? from + to : list.findIndex((o) => o.id === to);
  return from >= 0 && at >= 0 && at < list.length && at !== from ? { list, from, at } : undefined;
}
