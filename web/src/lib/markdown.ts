// Markdown of agents as blocks and spans. The marked library reads it, and the page makes its own
// elements of what it found and sets texts as text: HTML in a text stays what was written.
// What would take long to read stays plain.
import { Lexer, type Token, type Tokens } from 'marked';

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

const mostInline = 4000; // characters of one text with spans in it; longer ones are plain
const most = 100_000; // characters that are laid out at all

// Lists and quotes within each other on one line: the library's work grows with the square of their number.
const nested = /^(?: *(?:>|[-*+](?= )|\d+[.)](?= )) ?){9}/m;

// What may mean something: signs of spans anywhere, of blocks where a line begins.
const meaning = /[`*_~[\]<>|\\\n\r\t&@]|:\/\/|www\.|^ *(?:#|[-+=]|\d+[.)])|^\s|\s$/i;

/** isPlain is true for a text that is one paragraph without anything in it. It may be false for one that is. */
export const isPlain = (text: string) => text.length <= mostInline && !meaning.test(text);

const plain = (text: string): Span => ({ kind: 'text', text });

/** markdown reads a text. */
export function markdown(text: string): Block[] {
  const whole: Block[] = [{ kind: 'text', spans: [plain(text)] }];
  if (text.length > most || nested.test(text)) return whole;
  const lexer = new Lexer({ gfm: true });
  const tokens = lexer.blockTokens(text.replace(/\r\n?/g, '\n'), lexer.tokens);
  for (const part of lexer.inlineQueue) part.tokens.push(...inline(part.src));
  return tokens.flatMap(block);
}

/** spans reads what stands within a text. */
export const spans = (text: string): Span[] => inline(text).flatMap(span);

function inline(text: string): Token[] {
  return text.length > mostInline ? [{ type: 'text', raw: text, text }] : new Lexer({ gfm: true }).inlineTokens(text);
}

function block(t: Token): Block[] {
  switch (t.type) {
    case 'space':
    case 'def':
      return [];
    case 'hr':
      return [{ kind: 'rule' }];
    case 'code':
      return [{ kind: 'code', language: (t.lang ?? '').split(' ')[0], text: t.text.replace(/\n+$/, '') }];
    case 'heading':
      return [{ kind: 'heading', level: t.depth, spans: inner(t) }];
    case 'blockquote':
      return [{ kind: 'quote', blocks: (t.tokens ?? []).flatMap(block) }];
    case 'list':
      return [{ kind: 'list', ordered: t.ordered, start: Number(t.start) || 1, items: t.items.map(item) }];
    case 'table':
      return [
        { kind: 'table', head: t.header.map(inner), rows: t.rows.map((row: Tokens.TableCell[]) => row.map(inner)) },
      ];
  }
  return [{ kind: 'text', spans: inner(t) }];
}

function item(i: Tokens.ListItem): Item {
  return {
    ...(i.task ? { done: i.checked ?? false } : {}),
    blocks: i.tokens.filter((t) => t.type !== 'checkbox').flatMap(block),
  };
}

/** inner are the spans in a token: what was read in it, else what stands there. */
const inner = (t: Token | Tokens.TableCell): Span[] => {
  if ('tokens' in t && t.tokens) return t.tokens.flatMap(span);
  return [plain('raw' in t ? t.raw.replace(/\n+$/, '') : t.text)];
};

function span(t: Token): Span[] {
  switch (t.type) {
    case 'codespan':
      return [{ kind: 'code', text: t.text }];
    case 'strong':
    case 'em':
    case 'del':
      return [{ kind: t.type, inner: inner(t) }];
    case 'br':
      return [plain('\n')];
    case 'image':
    case 'link':
      return link(t as Tokens.Link | Tokens.Image);
    case 'escape':
      return [plain(t.text)];
    case 'text':
      return t.tokens ? inner(t) : [plain(t.raw)];
  }
  return [plain(t.raw)];
}

/** link is one to the web. Others are most often files of the project: they are named. */
function link(t: Tokens.Link | Tokens.Image): Span[] {
  const href = safe(t.href);
  if (!href) return [plain(t.text && t.text !== t.href ? `${t.text} (${t.href})` : t.href)];
  return [{ kind: 'link', href, inner: t.type === 'image' ? [plain(t.text || t.href)] : inner(t) }];
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
