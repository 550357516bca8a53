import { expect, test } from 'vitest';
import type { Current, Iteration } from '../lib/api';
import { timeline } from './run';

const ended = (number: number, attempt: number) => ({ number, attempt }) as Iteration;
const current = (number: number, attempt: number) => ({ number, attempt }) as Current;

test('the attempt under way is the last of the timeline', () => {
  expect(timeline([ended(1, 1), ended(1, 2)], current(2, 1)).map((s) => [s.key, s.ended !== null])).toEqual([
    ['1.1', true],
    ['1.2', true],
    ['2.1', false],
  ]);
});

test('an attempt that ended meanwhile is there once', () => {
  expect(timeline([ended(1, 1), ended(1, 2)], current(1, 2)).map((s) => s.key)).toEqual(['1.1', '1.2']);
  expect(timeline([ended(1, 1)], current(1, 2)).map((s) => s.key)).toEqual(['1.1', '1.2']);
  expect(timeline([], null)).toEqual([]);
});
