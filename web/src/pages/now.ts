// What the first page decides: what the inbox has, one entry for each that a person goes through.

import type { Need } from '../lib/api';

/** needKey names an entry, so that a new one above it moves nothing away from under the person. */
export const needKey = (n: Need) =>
  n.run
    ? `run ${n.run.run}${n.step ? ` ${n.step}` : ''}`
    : `case ${n.case?.id ?? (n.kind === 'review' ? 'reviews' : n.title)}`;

/** joinReviews makes one entry of more than three tasks that wait for nothing but a review: they have their own page. */
export function joinReviews(inbox: Need[]): Need[] {
  const reviews = inbox.filter((n) => n.kind === 'review' && !n.run);
  if (reviews.length <= 3) return inbox;
  const one: Need = {
    kind: 'review',
    title: `${reviews.length} tasks wait for your review`,
    why: reviews.map((n) => n.title).join(', '),
    since: reviews[0]!.since,
  };
  return inbox.flatMap((n) => (n === reviews[0] ? [one] : reviews.includes(n) ? [] : [n]));
}
