// How a check is told in a line: what came of it, and how long it took.

import type { Gate } from '../lib/api';
import { duration, round, whole } from '../lib/format';
import { gateLook } from '../lib/status';

/** gateTime is the time that a check took, of how much it may take. */
export function gateTime(g: Pick<Gate, 'status' | 'elapsed' | 'timeout'>): string {
  if (g.status === 'not run' || g.status === 'waiting') return '';
  const took = g.status === 'running' ? whole(g.elapsed) : duration(g.elapsed);
  return g.timeout > 0 ? `${took} / ${round(g.timeout)}` : took;
}

/** gateResult counts the tests of a check where it says how many there were, else it is the word of its status. */
export function gateResult(g: Pick<Gate, 'status' | 'total' | 'passed'>): string {
  const word = gateLook(g.status).word;
  if (g.total === null || g.total === undefined) return word;
  if (g.status === 'passed') return `${g.passed ?? 0} of ${g.total} passed`;
  const failed = g.total - (g.passed ?? 0);
  return failed > 0 ? `${failed} of ${g.total} failed` : word;
}
