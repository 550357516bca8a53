// What a long list shows: the rows that are in view, and a few more.

/** Window is a range of rows: from is the first, to the one after the last. */
export interface Window {
  from: number;
  to: number;
}

/** windowOf is for rows of one height; over is how many more each side gets. */
export function windowOf(scrollTop: number, height: number, row: number, count: number, over = 6): Window {
  const first = Math.floor(Math.max(0, scrollTop) / row);
  const shown = Math.ceil(Math.max(0, height) / row) + 1;
  const to = Math.min(count, first + shown + over);
  return { from: Math.max(0, Math.min(first, count) - over), to };
}

/** scrollFor is the scroll position at which row i is in view, moved as little as can be. */
export function scrollFor(i: number, row: number, scrollTop: number, height: number): number {
  const top = i * row;
  if (top < scrollTop) return top;
  if (top + row > scrollTop + height) return top + row - height;
  return scrollTop;
}
