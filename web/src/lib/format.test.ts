import { expect, test } from 'vitest';
import { causeFirst } from './format';

test('what failed comes before the limit that it ran into', () => {
  expect(causeFirst('Iteration safety guard: circuit_breaker; last failure: FAIL: TestGreet')).toBe(
    'FAIL: TestGreet (Iteration safety guard: circuit_breaker)',
  );
  expect(causeFirst('Reached max iterations')).toBe('Reached max iterations');
  expect(causeFirst('')).toBe('');
});
