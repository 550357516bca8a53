import { expect, test } from 'vitest';
import { checkOfLine, checksAsLines } from './checks';

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
