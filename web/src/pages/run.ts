// What the page of a run decides: which attempts its timeline has.

import type { Current, Iteration } from '../lib/api';

/** Step is a line of the timeline: an attempt that ended, or the one in progress. */
export interface Step {
  key: string;
  number: number;
  attempt: number;
  ended: Iteration | null;
}

/** timeline has the attempts that ended, and the one in progress unless it is among them by now. */
export function timeline(ended: Iteration[], current: Current | null): Step[] {
  const steps: Step[] = ended.map((i) => ({ key: keyOf(i), number: i.number, attempt: i.attempt, ended: i }));
  if (current && !steps.some((s) => s.key === keyOf(current))) {
    steps.push({ key: keyOf(current), number: current.number, attempt: current.attempt, ended: null });
  }
  return steps;
}

/** keyOf names an attempt in the address of the page. */
export const keyOf = (i: { number: number; attempt: number }) => `${i.number}.${i.attempt}`;
