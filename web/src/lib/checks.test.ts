import { expect, test } from 'vitest';
import { checkOfLine, checksAsLines, lookOf } from './checks';

test('checks go to lines and back', () => {
  const list = [
    { command: 'make test' },
    { command: 'a\nb' },
    { command: 'x', files: { 'a.sh': 'true\n' } },
    { command: '{ x; }' },
  ];
  const lines = checksAsLines(list).split('\n');
  expect(lines.length).toBe(4);
  expect(lines[0]).toBe('make test');
  expect(lines.map(checkOfLine)).toEqual(['make test', ...list.slice(1)]);
});

test('braces of a shell are a command', () => {
  expect(checkOfLine('{ true; }')).toBe('{ true; }');
});

test('a criterion is as its check has ended', () => {
  expect(lookOf({ criterion: 'it is quick', check: 'slow', after: 'failed' })).toMatchObject({
    sign: '✗',
    word: 'slow: failed',
  });
  const greets = { criterion: 'it greets', check: 'greets', after: 'passed', before: 'red: exit status 1' };
  expect(lookOf(greets).word).toBe('greets: passed; before the work red: exit status 1');
  expect(lookOf({ criterion: 'it is short', check: 'long' }).word).toBe('long: not run yet');
  expect(lookOf({ criterion: 'it is short' }).word).toBe('not checked');
});
