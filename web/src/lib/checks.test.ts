import { expect, test } from 'vitest';
import type { Gate } from './api';
import { checkOfLine, checksAsLines, proofOf } from './checks';

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

test('a criterion is as the worst of its checks', () => {
  const gate = (name: string, status: string, criterion: string) => ({ name, status, criterion }) as Gate;
  const gates = [
    gate('quick', 'passed', 'It is quick'),
    gate('slow', 'failed', 'it is quick'),
    { ...gate('greets', 'passed', 'it greets'), before: 'red: exit status 1' },
  ];
  expect(proofOf('it is quick ', gates)).toMatchObject({ sign: '✗', word: 'slow: failed' });
  expect(proofOf('it greets', gates).word).toBe('greets: passed; before the work red: exit status 1');
  expect(proofOf('it is short', gates).word).toBe('not checked');
  expect(proofOf('it is short', []).tone).toBe('rest');
});
