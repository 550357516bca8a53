import { expect, test } from 'vitest';
import { marked, sides } from './sides';

const mark = (sign: string, word = '') => sign.repeat(23) + (word && ` ${word}`);
const text = [
  ...['1', '2', '3', '4', '5'],
  mark('<', 'mine'),
  'of me\r',
  mark('|', 'base'),
  'old',
  mark('='),
  'of the agent',
  '<<<<<<< no marker',
  mark('>', 'agent'),
  ...['6', '7', '8', '9', '10'],
  '',
].join('\n');

test('both sides are shown with what is around them', () => {
  expect(sides(text, 2).map((l) => `${l.side}${l.heading ? '#' : ':'} ${l.text}`)).toEqual([
    ': …',
    ': 4',
    ': 5',
    'mine# Mine',
    'mine: of me',
    'base# Before both',
    'base: old',
    'agent# The agent’s',
    'agent: of the agent',
    'agent: <<<<<<< no marker',
    ': 6',
    ': 7',
    ': …',
  ]);
});

test('a text has markers until each is taken out', () => {
  expect(marked(text)).toBe(true);
  expect(marked('a\n' + mark('=') + '\n')).toBe(true);
  expect(marked('a\n<<<<<<< b\n=======\n')).toBe(false);
});
