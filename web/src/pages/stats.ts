// What the statistics show: a value for each day, also for those on which nothing happened.

import { short } from '../lib/format';
import type { Series } from '../ui/Bars.svelte';

/** EndedDay is how the runs of a day ended. */
export interface EndedDay {
  day: string;
  completed: number;
  failed: number;
  other: number;
  iterations: number;
}

/** UsedDay is what an agent used on a day. */
export interface UsedDay {
  day: string;
  agent: string;
  cost_usd: number | null;
}

/** iterationsPerRun is the mean of each day. */
export function iterationsPerRun(days: string[], ended: EndedDay[]): number[] {
  const byDay = new Map(ended.map((d) => [d.day, d]));
  return days.map((day) => {
    const d = byDay.get(day);
    return d ? d.iterations / Math.max(1, d.completed + d.failed + d.other) : 0;
  });
}

/** totalCost is what all of it cost; null where nothing is known of any. */
export const totalCost = (used: { cost_usd: number | null }[]): number | null =>
  used.reduce<number | null>((sum, u) => (u.cost_usd === null ? sum : (sum ?? 0) + u.cost_usd), null);

/**
 * costByAgent is what each agent cost, day by day: null where it worked and nobody knows. An
 * agent whose cost is never known is left out, and so is what has no agent and cost nothing.
 */
export function costByAgent(days: string[], used: UsedDay[]): Series[] {
  const cost = new Map(used.map((u) => [`${u.day} ${u.agent}`, u.cost_usd]));
  const agents = [...new Set(used.map((u) => u.agent))].sort();
  const least = (agent: string) => (agent === '' ? 0 : -1);
  return agents
    .filter((agent) => days.some((day) => (cost.get(`${day} ${agent}`) ?? -1) > least(agent)))
    .map((agent, i) => ({
      name: short(agent || 'no agent', 24),
      tone: `c${(i % 4) + 1}`,
      values: days.map((day) => {
        const known = cost.get(`${day} ${agent}`);
        return known === undefined ? 0 : known;
      }),
    }));
}
