import { expect, test } from 'vitest';
import { costByAgent, iterationsPerRun, totalCost } from './stats';

const days = ['2026-01-01', '2026-01-02', '2026-01-03'];

test('iterations of a run are the mean of its day, and a day without an end has none', () => {
  const ended = [
    { day: days[0]!, completed: 1, failed: 1, other: 0, iterations: 5 },
    { day: days[2]!, completed: 0, failed: 0, other: 0, iterations: 3 },
  ];
  expect(iterationsPerRun(days, ended)).toEqual([2.5, 0, 3]);
});

test('each agent has a line, with nothing on the days on which it did nothing', () => {
  const used = [
    { day: days[1]!, agent: 'codex', cost_usd: 2 },
    { day: days[0]!, agent: 'claude', cost_usd: 1 },
    { day: days[2]!, agent: 'codex', cost_usd: null },
  ];
  expect(costByAgent(days, used)).toEqual([
    { name: 'claude', tone: 'c1', values: [1, 0, 0] },
    { name: 'codex', tone: 'c2', values: [0, 2, null] },
  ]);
});

test('what has no agent is shown where it cost something', () => {
  expect(costByAgent(days, [{ day: days[0]!, agent: '', cost_usd: 0 }])).toEqual([]);
  expect(costByAgent(days, [{ day: days[0]!, agent: '', cost_usd: 0.5 }])).toMatchObject([{ name: 'no agent' }]);
});

test('a cost that nobody knows is not zero', () => {
  const unknown = [{ day: days[0]!, agent: 'codex', cost_usd: null }];
  expect(costByAgent(days, unknown)).toEqual([]);
  expect(totalCost(unknown)).toBe(null);
  expect(totalCost([])).toBe(null);
  expect(totalCost([...unknown, { cost_usd: 0 }, { cost_usd: 1.5 }])).toBe(1.5);
});
