// Markdown of agents as blocks and spans. They are data: the page makes its own
// elements of them and sets texts as text, so that a tag stays what was written.
// What is not understood stays as it is, and the work grows with the length only.

/** Span is a piece of a line. */
export type Span =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong'; inner: Span[] }
  | { kind: 'em'; inner: Span[] }
  | { kind: 'del'; inner: Span[] }
  | { kind: 'link'; inner: Span[]; href: string };

/** Item is one of a list; done is set where it has a box. */
export interface Item {
  done?: boolean;
  blocks: Block[];
}

/** Block is what stands on lines of its own. */
export type Block =
  | { kind: 'text'; spans: Span[] }
  | { kind: 'heading'; level: number; spans: Span[] }
  | { kind: 'code'; language: string; text: string }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'list'; start: number; ordered: boolean; items: Item[] }
  | { kind: 'table'; head: Span[][]; rows: Span[][][] }
  | { kind: 'rule' };

const mostNested = 8;
const mostInline = 4000; // characters of one text with spans in it; longer ones are plain
const most = 200_000; // characters that are laid out at all

const fence = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const heading = /^ {0,3}(#{1,6})\s+(.*)$/;
const rule = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const quote = /^ {0,3}> ?/;
const item = /^( {0,3})([-*+]|\d{1,9}[.)])( +)(?=\S)/;
const box = /^\[([ xX])\]\s+/;
const divider = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

// What may mean something: signs of spans anywhere, of blocks where a line begins.
const meaning = /[`*_~[\]<>|\\\n\r\t]|:\/\/|^ *(?:#|[-+=]|\d+[.)])|^\s|\s$/;

/** isPlain is true for a text that is one paragraph without anything in it. It may be false for one that is. */
export const isPlain = (text: string) => text.length <= mostInline && !meaning.test(text);

/** markdown reads a text. */
export function markdown(text: string): Block[] {
  if (text.length > most) return [{ kind: 'text', spans: [{ kind: 'text', text }] }];
  return blocks(text.replace(/\r\n?/g, '\n').split('\n'), 0);
}

const blank = (line: string | undefined) => line === undefined || line.trim() === '';
const indent = (line: string) => line.length - line.trimStart().length;

/** starts is true for a line that ends a paragraph. */
const starts = (line: string) => fence.test(line) || heading.test(line) || rule.test(line) || quote.test(line) || item.test(line);

function blocks(lines: string[], depth: number): Block[] {
  const out: Block[] = [];
  if (depth > mostNested) return [{ kind: 'text', spans: [{ kind: 'text', text: lines.join('\n') }] }];
  let i = 0;
  while (i < lines.length) {
    const line = lines[i]!;
    if (blank(line)) {
      i++;
      continue;
    }
    const take = fenced(lines, i) ?? indented(lines, i) ?? single(line, i) ?? quoted(lines, i, depth) ?? listed(lines, i, depth) ?? tabled(lines, i) ?? paragraph(lines, i);
    out.push(take.block);
    i = take.next;
  }
  return out;
}

interface Taken {
  block: Block;
  next: number;
}

function fenced(lines: string[], from: number): Taken | null {
  const open = fence.exec(lines[from]!);
  if (!open) return null;
  const mark = open[1]!;
  const inset = indent(lines[from]!);
  let i = from + 1;
  while (i < lines.length && !(lines[i]!.trim().startsWith(mark) && lines[i]!.trim().replaceAll(mark[0]!, '') === '')) i++;
  const text = lines.slice(from + 1, i).map((l) => l.slice(Math.min(inset, indent(l))));
  return { block: { kind: 'code', language: open[2] ?? '', text: text.join('\n') }, next: i + 1 };
}

function indented(lines: string[], from: number): Taken | null {
  if (!/^(?: {4}|\t)/.test(lines[from]!)) return null;
  let i = from;
  while (i < lines.length && (/^(?: {4}|\t)/.test(lines[i]!) || (blank(lines[i]) && /^(?: {4}|\t)/.test(lines[i + 1] ?? '')))) i++;
  return { block: { kind: 'code', language: '', text: lines.slice(from, i).map((l) => l.replace(/^(?: {4}|\t)/, '')).join('\n') }, next: i };
}

function single(line: string, from: number): Taken | null {
  const head = heading.exec(line);
  if (head) return { block: { kind: 'heading', level: head[1]!.length, spans: spans(head[2]!.replace(/\s+#+\s*$/, '')) }, next: from + 1 };
  if (rule.test(line)) return { block: { kind: 'rule' }, next: from + 1 };
  return null;
}

function quoted(lines: string[], from: number, depth: number): Taken | null {
  let i = from;
  while (i < lines.length && quote.test(lines[i]!)) i++;
  if (i === from) return null;
  return { block: { kind: 'quote', blocks: blocks(lines.slice(from, i).map((l) => l.replace(quote, '')), depth + 1) }, next: i };
}

function listed(lines: string[], from: number, depth: number): Taken | null {
  const first = item.exec(lines[from]!);
  if (!first) return null;
  const ordered = /\d/.test(first[2]!);
  const items: Item[] = [];
  let i = from;
  while (i < lines.length) {
    const mark = item.exec(lines[i]!);
    if (!mark || rule.test(lines[i]!) || /\d/.test(mark[2]!) !== ordered) break;
    const inset = mark[1]!.length + mark[2]!.length + Math.min(mark[3]!.length, 4);
    const own = [lines[i]!.slice(mark[0].length)];
    i++;
    for (; i < lines.length; i++) {
      const l = lines[i]!;
      if (blank(l)) {
        // A blank line belongs to the item if more of the item follows.
        if (blank(lines[i + 1]) || indent(lines[i + 1]!) < 2) break;
        own.push('');
      } else if (indent(l) >= Math.min(inset, 2 + mark[1]!.length)) own.push(l.slice(Math.min(inset, indent(l))));
      else if (starts(l)) break;
      else own.push(l); // the paragraph goes on
    }
    const state = box.exec(own[0]!);
    if (state) own[0] = own[0]!.slice(state[0].length);
    items.push({ ...(state ? { done: state[1] !== ' ' } : {}), blocks: blocks(own, depth + 1) });
    let after = i;
    while (after < lines.length && blank(lines[after])) after++;
    if (after < lines.length && item.test(lines[after]!)) i = after;
  }
  return { block: { kind: 'list', ordered, start: ordered ? Number.parseInt(first[2]!, 10) : 1, items }, next: i };
}

function cells(line: string): string[] {
  const trimmed = line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '');
  return trimmed.split(/(?<!\\)\|/).map((c) => c.trim().replaceAll('\\|', '|'));
}

function tabled(lines: string[], from: number): Taken | null {
  if (!lines[from]!.includes('|') || !divider.test(lines[from + 1] ?? '')) return null;
  const head = cells(lines[from]!);
  if (cells(lines[from + 1]!).length !== head.length) return null;
  let i = from + 2;
  const rows: Span[][][] = [];
  for (; i < lines.length && !blank(lines[i]) && lines[i]!.includes('|'); i++) {
    const row = cells(lines[i]!);
    rows.push(head.map((_, n) => spans(row[n] ?? '')));
  }
  return { block: { kind: 'table', head: head.map((c) => spans(c)), rows }, next: i };
}

function paragraph(lines: string[], from: number): Taken {
  let i = from + 1;
  while (i < lines.length && !blank(lines[i]) && !starts(lines[i]!) && !(lines[i]!.includes('|') && divider.test(lines[i + 1] ?? ''))) i++;
  const text = lines.slice(from, i).map((l) => l.trim()).join('\n');
  return { block: { kind: 'text', spans: spans(text) }, next: i };
}

const special = /[`*_~[\\h!]/g;

/** spans reads what stands within a text. */
export function spans(text: string, depth = 0): Span[] {
  if (text.length > mostInline || depth > mostNested) return [{ kind: 'text', text }];
  const out: Span[] = [];
  let plain = '';
  const push = (s: Span) => {
    if (plain) out.push({ kind: 'text', text: plain });
    plain = '';
    out.push(s);
  };
  for (let i = 0; i < text.length; ) {
    special.lastIndex = i;
    const at = special.exec(text)?.index ?? text.length;
    plain += text.slice(i, at);
    i = at;
    const found = at < text.length ? (escaped(text, i) ?? code(text, i) ?? marked(text, i, depth) ?? linked(text, i, depth) ?? bare(text, i)) : null;
    if (!found) {
      plain += text.slice(i, ++i);
      continue;
    }
    if (typeof found.span === 'string') plain += found.span;
    else push(found.span);
    i = found.next;
  }
  if (plain) out.push({ kind: 'text', text: plain });
  return out;
}

interface Found {
  span: Span | string;
  next: number;
}

function escaped(text: string, i: number): Found | null {
  return text[i] === '\\' && /[!-/:-@[-`{-~]/.test(text[i + 1] ?? '') ? { span: text[i + 1]!, next: i + 2 } : null;
}

function code(text: string, i: number): Found | null {
  if (text[i] !== '`') return null;
  const mark = /^`+/.exec(text.slice(i))![0];
  let end = text.indexOf(mark, i + mark.length);
  while (end >= 0 && (text[end + mark.length] === '`' || text[end - 1] === '`')) {
    while (text[end] === '`') end++;
    end = text.indexOf(mark, end);
  }
  if (end < 0) return { span: mark, next: i + mark.length };
  const inner = text.slice(i + mark.length, end);
  return { span: { kind: 'code', text: /^ .*[^ ].* $/s.test(inner) ? inner.slice(1, -1) : inner }, next: end + mark.length };
}

const letter = /[\p{L}\p{N}_]/u;

function marked(text: string, i: number, depth: number): Found | null {
  const both = /^(\*\*\*|___)(?!\s)([^*_\n]+)(?<!\s)\1/.exec(text.slice(i, i + 500));
  if (both) return { span: { kind: 'em', inner: [{ kind: 'strong', inner: spans(both[2]!, depth + 1) }] }, next: i + both[0].length };
  for (const [mark, kind] of [['**', 'strong'], ['__', 'strong'], ['~~', 'del'], ['*', 'em'], ['_', 'em']] as const) {
    if (!text.startsWith(mark, i)) continue;
    const from = i + mark.length;
    if (/\s/.test(text[from] ?? ' ') || text[from] === mark[0]) continue;
    if (mark[0] === '_' && letter.test(text[i - 1] ?? ' ')) continue; // a name with underscores
    for (let end = text.indexOf(mark, from + 1); end >= 0; end = text.indexOf(mark, end + 1)) {
      if (/\s/.test(text[end - 1]!) || text[end - 1] === '\\') continue;
      if (mark.length === 1 && (text[end + 1] === mark || text[end - 1] === mark)) continue;
      if (mark[0] === '_' && letter.test(text[end + mark.length] ?? ' ')) continue;
      return { span: { kind, inner: spans(text.slice(from, end), depth + 1) }, next: end + mark.length };
    }
  }
  return null;
}

/** safe is an address that a link may have: of the web, and nothing that runs. */
function safe(address: string): string {
  try {
    const url = new URL(address);
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : '';
  } catch {
    return '';
  }
}

function linked(text: string, i: number, depth: number): Found | null {
  const link = /^(!?)\[([^[\]\n]{0,500})\]\(\s*<?([^()\s<>]{1,2000})>?(?:\s+"[^"\n]{0,200}")?\s*\)/.exec(text.slice(i, i + 3000));
  if (!link) return null;
  const href = safe(link[3]!);
  const words = link[2] || link[3]!;
  if (!href) return { span: link[2] ? `${link[2]} (${link[3]})` : link[3]!, next: i + link[0].length }; // a file of the project, most often
  return { span: { kind: 'link', href, inner: link[1] ? [{ kind: 'text', text: words }] : spans(words, depth + 1) }, next: i + link[0].length };
}

function bare(text: string, i: number): Found | null {
  if (text[i] !== 'h' || letter.test(text[i - 1] ?? ' ')) return null;
  const url = /^https?:\/\/[^\s<>"'`()[\]{}|\\^]{1,2000}/.exec(text.slice(i, i + 2100));
  if (!url) return null;
  const address = url[0].replace(/[.,;:!?*_~]+$/, '');
  const href = safe(address);
  return href ? { span: { kind: 'link', href, inner: [{ kind: 'text', text: address }] }, next: i + address.length } : null;
}
