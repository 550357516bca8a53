// Makes rows to show of the hunks of one file.

/** Row is a line of a patch. Numbers are of lines, from 1; 0 is none. */
export interface Row {
  kind: 'hunk' | 'same' | 'added' | 'removed' | 'note';
  before: number;
  after: number;
  text: string;
  /** What differs from the line on the other side: from, to in text. */
  mark?: [number, number];
  /** What each character is part of (paint.ts). */
  paint?: Uint8Array;
}

/** segments cuts a row into what looks alike. */
export function segments(r: Row): { text: string; mark: boolean; paint: number }[] {
  const [from, to] = r.mark ?? [0, 0];
  const look = (i: number) => (r.paint?.[i] ?? 0) + (i >= from && i < to ? 100 : 0);
  const out = [];
  for (let at = 0, end; at < r.text.length; at = end) {
    for (end = at + 1; end < r.text.length && look(end) === look(at);) end++;
    out.push({ text: r.text.slice(at, end), mark: look(at) >= 100, paint: look(at) % 100 });
  }
  return out;
}

/** Pair is a row of two columns; null where a side has no line. */
export interface Pair {
  hunk?: Row;
  left: Row | null;
  right: Row | null;
}

/** Hunk is a place of a file that differs, as the server sends it. */
export interface Hunk {
  old_start: number;
  new_start: number;
  heading: string;
  lines: string[];
}

/** rows numbers the lines of a file's hunks. */
export function rows(hunks: Hunk[]): Row[] {
  const out: Row[] = [];
  for (const h of hunks) {
    let before = h.old_start;
    let after = h.new_start;
    out.push({ kind: 'hunk', before, after, text: h.heading });
    for (const line of h.lines) {
      const text = line.slice(1);
      if (line[0] === '+') out.push({ kind: 'added', before: 0, after: after++, text });
      else if (line[0] === '-') out.push({ kind: 'removed', before: before++, after: 0, text });
      else if (line[0] === '\\') out.push({ kind: 'note', before: 0, after: 0, text: text.trim() });
      else out.push({ kind: 'same', before: before++, after: after++, text });
    }
  }
  mark(out);
  return out;
}

/** mark finds, in runs of as many removed as added lines, what changed in each. */
function mark(list: Row[]): void {
  for (let i = 0; i < list.length;) {
    if (list[i]!.kind !== 'removed') {
      i++;
      continue;
    }
    let added = i;
    while (list[added]?.kind === 'removed') added++;
    let end = added;
    while (list[end]?.kind === 'added') end++;
    if (added - i === end - added) {
      for (let n = 0; n < added - i; n++) differ(list[i + n]!, list[added + n]!);
    }
    i = end;
  }
}

function differ(a: Row, b: Row): void {
  const shorter = Math.min(a.text.length, b.text.length);
  if (shorter > 2000) return;
  let head = 0;
  while (head < shorter && a.text[head] === b.text[head]) head++;
  let tail = 0;
  while (tail < shorter - head && a.text[a.text.length - 1 - tail] === b.text[b.text.length - 1 - tail]) tail++;
  // Lines that share little are better read whole.
  if (head + tail < shorter / 3) return;
  a.mark = [head, a.text.length - tail];
  b.mark = [head, b.text.length - tail];
}

/** pairs puts removed and added lines beside each other. */
export function pairs(list: Row[]): Pair[] {
  const out: Pair[] = [];
  for (let i = 0; i < list.length;) {
    const r = list[i]!;
    if (r.kind === 'hunk' || r.kind === 'note') {
      out.push({ hunk: r, left: null, right: null });
      i++;
      continue;
    }
    if (r.kind === 'same') {
      out.push({ left: r, right: r });
      i++;
      continue;
    }
    let added = i;
    while (list[added]?.kind === 'removed') added++;
    let end = added;
    while (list[end]?.kind === 'added') end++;
    for (let n = 0; n < Math.max(added - i, end - added); n++) {
      out.push({ left: i + n < added ? list[i + n]! : null, right: added + n < end ? list[added + n]! : null });
    }
    i = end;
  }
  return out;
}

/** Comment is what a person says about a line. */
export interface Comment {
  file: string;
  /** line is counted as the file is after the change, or before it for one that was removed. */
  line: number;
  side: 'before' | 'after';
  /** code is the line itself: by it a later review knows whether it is as it was. */
  code: string;
  text: string;
}

/** spelled are comments as the agent gets them and the task's history keeps them: see [threads]. */
export const spelled = (list: Comment[]): string =>
  list.map((c) => `${c.file}:${c.line}${c.side === 'before' ? ' (removed)' : ''}: ${c.text}\n> ${c.code}`).join('\n');

/** threads reads comments back from what was said. */
export function threads(said: string): Comment[] {
  const found = said.matchAll(/^(\S.*?):(\d+)( \(removed\))?: ([\s\S]*?)\n> (.*)$/gm);
  return [...found].map(([, file = '', line = '', before, text = '', code = '']) => ({
    file,
    line: Number(line),
    side: before ? 'before' : 'after',
    code,
    text,
  }));
}

const most = 60; // rows that one line is broken into

/** wrapped breaks lines that are wider than cols characters: every row stays of one height. */
export function wrapped(list: Pair[], cols: number): Pair[] {
  return list.flatMap((p) => {
    if (p.hunk) return [p];
    const [left, right] = [pieces(p.left, cols), pieces(p.right, cols)];
    return Array.from({ length: Math.max(left.length, right.length) }, (_, i) => ({
      left: left[i] ?? null,
      right: right[i] ?? null,
    }));
  });
}

function pieces(r: Row | null, cols: number): Row[] {
  if (!r) return [];
  if (r.text.length <= cols) return [r];
  const out: Row[] = [];
  for (let at = 0; at < r.text.length && out.length < most; at += cols) {
    const piece: Row = {
      kind: r.kind,
      before: at === 0 ? r.before : 0,
      after: at === 0 ? r.after : 0,
      text: r.text.slice(at, at + cols),
    };
    if (r.paint) piece.paint = r.paint.subarray(at, at + cols);
    const [from, to] = r.mark ? [Math.max(0, r.mark[0] - at), Math.min(cols, r.mark[1] - at)] : [0, 0];
    if (from < to) piece.mark = [from, to];
    out.push(piece);
  }
  return out;
}
