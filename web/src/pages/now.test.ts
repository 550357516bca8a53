import { expect, test } from 'vitest';
import type { Need } from '../lib/api';
import { joinReviews, needKey } from './now';

const need = (kind: string, title: string, more: object = {}) =>
  ({ kind, title, why: '', since: `since ${title}`, ...more }) as Need;
const review = (id: string) => need('review', id, { case: { id } });

test('more than three reviews of tasks are one entry, where the first of them stood', () => {
  const inbox = [need('question', 'q'), review('a'), need('failed', 'f'), review('b'), review('c'), review('d')];
  expect(joinReviews(inbox).map((n) => n.title)).toEqual(['q', '4 tasks wait for your review', 'f']);
  expect(joinReviews(inbox)[1]).toMatchObject({ why: 'a, b, c, d', since: 'since a' });
  expect(joinReviews(inbox.slice(0, 5))).toEqual(inbox.slice(0, 5));
});

test('the review of a run is an entry of its own', () => {
  const inbox = [review('a'), review('b'), review('c'), need('review', 'r', { run: { run: 'r-1' } })];
  expect(joinReviews(inbox)).toHaveLength(4);
});

test('an entry is known by its run and step, its task, or its title', () => {
  expect(needKey(need('question', 'x', { run: { run: 'r-1' } }))).toBe('run r-1');
  expect(needKey(need('question', 'x', { run: { run: 'r-1' }, step: 'build' }))).toBe('run r-1 build');
  expect(needKey(review('t-1'))).toBe('case t-1');
  expect(needKey(need('review', '4 tasks'))).toBe(needKey(need('review', '5 tasks')));
  expect(needKey(need('paused', 'The autopilot'))).not.toBe(needKey(need('paused', 'The queue')));
});
