// What statuses mean: their colour, their sign and their word. A colour never
// stands alone; sign and word say the same.

import type { Gate, GateSpec, Run } from './api';

export type Tone = 'run' | 'ask' | 'good' | 'bad' | 'rest';

/** Look is how a status is shown. */
export interface Look {
  tone: Tone;
  sign: string;
  word: string;
}

const looks: Record<string, Look> = {
  // runs
  running: { tone: 'run', sign: '●', word: 'running' },
  waiting: { tone: 'run', sign: '◔', word: 'waiting' },
  paused: { tone: 'ask', sign: '‖', word: 'paused' },
  pending: { tone: 'ask', sign: '?', word: 'asks you' },
  blocked: { tone: 'ask', sign: '!', word: 'blocked' },
  completed: { tone: 'good', sign: '✓', word: 'completed' },
  failed: { tone: 'bad', sign: '✗', word: 'failed' },
  aborted: { tone: 'bad', sign: '✗', word: 'aborted' },
  timeout: { tone: 'bad', sign: '◷', word: 'at its limit' },
  exhausted: { tone: 'bad', sign: '◷', word: 'at its maximum, red' },
  interrupted: { tone: 'rest', sign: '–', word: 'interrupted' },
  stopped: { tone: 'rest', sign: '■', word: 'stopped' },
};

const caseLooks: Record<string, Look> = {
  pending: { tone: 'rest', sign: '○', word: 'pending' },
  active: { tone: 'run', sign: '●', word: 'active' },
  blocked: { tone: 'ask', sign: '!', word: 'blocked' },
  review: { tone: 'ask', sign: '◐', word: 'in review' },
  done: { tone: 'good', sign: '✓', word: 'done' },
  failed: { tone: 'bad', sign: '✗', word: 'failed' },
  timeout: { tone: 'bad', sign: '◷', word: 'at its limit' },
  deferred: { tone: 'rest', sign: '‖', word: 'deferred' },
};

const outcomeLooks: Record<string, Look> = {
  success: { tone: 'good', sign: '✓', word: 'success' },
  failed: { tone: 'bad', sign: '✗', word: 'failed' },
  neutral: { tone: 'rest', sign: '○', word: 'neutral' },
  asked: { tone: 'ask', sign: '?', word: 'asked' },
  waited: { tone: 'rest', sign: '◔', word: 'cut off by a limit' },
  running: { tone: 'run', sign: '●', word: 'running' },
};

const gateLooks: Record<string, Look> = {
  passed: { tone: 'good', sign: '✓', word: 'passed' },
  failed: { tone: 'bad', sign: '✗', word: 'failed' },
  timeout: { tone: 'bad', sign: '✗', word: 'TIMEOUT' },
  error: { tone: 'bad', sign: '✗', word: 'cannot start' },
  running: { tone: 'run', sign: '●', word: 'running…' },
  waiting: { tone: 'rest', sign: '○', word: 'waiting' },
  'not run': { tone: 'rest', sign: '○', word: 'not run' },
};

const unknown = (word: string): Look => ({ tone: 'rest', sign: '○', word });

export const runLook = (status: string): Look => looks[status] ?? unknown(status);
/** lookOf is a run's look: what it was asked for, and takes later, comes before how it is. */
export function lookOf(r: Run): Look {
  if (works(r.status) && r.coming.includes('stop')) return { tone: 'ask', sign: '■', word: 'stopping…' };
  if (works(r.status) && r.coming.includes('pause')) return { tone: 'ask', sign: '‖', word: 'pausing…' };
  if (!works(r.status) && r.coming.includes('answer'))
    return { tone: 'rest', sign: '○', word: r.kind === 'task' ? 'waits for a slot' : 'answered' };
  return runLook(r.status);
}
export const caseLook = (status: string): Look => caseLooks[status] ?? unknown(status);
export const outcomeLook = (outcome: string): Look => outcomeLooks[outcome] ?? unknown(outcome);
export const gateLook = (status: string): Look => gateLooks[status] ?? unknown(status);

/** notBegun are checks that wait for the agent. */
export const notBegun = (list: readonly GateSpec[]): Gate[] =>
  list.map((g) => ({
    ...g,
    status: 'waiting',
    elapsed: 0,
    exit_code: -1,
    passed: null,
    total: null,
    note: '',
    file: '',
  }));

/** works is true for a run that is under way. */
export const works = (status: string) => status === 'running' || status === 'waiting';
