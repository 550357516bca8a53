import { expect, test } from 'vitest';
import { gateResult, gateTime } from './gates';

test('the time of a check is told with how much it may take', () => {
  expect(gateTime({ status: 'passed', elapsed: 42, timeout: 0 })).toBe('42s');
  expect(gateTime({ status: 'passed', elapsed: 42, timeout: 600 })).toMatch(/^42s \/ 10m/);
  expect(gateTime({ status: 'running', elapsed: 41.7, timeout: 0 })).toBe('41s');
  expect(gateTime({ status: 'not run', elapsed: 3, timeout: 600 })).toBe('');
  expect(gateTime({ status: 'waiting', elapsed: 3, timeout: 600 })).toBe('');
});

test('tests are counted where the check said how many there are', () => {
  expect(gateResult({ status: 'passed', total: 12, passed: 12 })).toBe('12 of 12 passed');
  expect(gateResult({ status: 'failed', total: 12, passed: 9 })).toBe('3 of 12 failed');
  expect(gateResult({ status: 'failed', total: 12, passed: null })).toBe('12 of 12 failed');
  expect(gateResult({ status: 'failed', total: 12, passed: 12 })).toBe('failed');
  expect(gateResult({ status: 'timeout', total: null, passed: null })).toBe('TIMEOUT');
});
