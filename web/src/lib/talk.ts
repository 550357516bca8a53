// Makes turns of a conversation out of what an agent's program told.

import type { AgentEvent } from './api';
import { bytes, money } from './format';
import type { Part } from './parts';

/** Said is a part of a conversation. */
export type Said = Part & { events: AgentEvent[] };

/** Turn is one block of the conversation. */
export interface Turn {
  key: number;
  kind: 'text' | 'thinking' | 'tool' | 'note' | 'wrong';
  tool: string;
  /** call is the program's id of a tool call, if it has one. */
  call: string;
  /** over: the tool call has ended, with this result. */
  over: boolean;
  result: string;
  text: string;
  size: number;
  failed: boolean;
  sub: boolean;
}

/** long is how many characters of a text are shown before it is cut. */
export const long = 6000;

const blank = (key: number): Turn => ({ key, kind: 'note', tool: '', call: '', over: false, result: '', text: '', size: 0, failed: false, sub: false });

function read(e: AgentEvent): Turn | null {
  const t = { ...blank(e.offset), sub: e.sub ?? false };
  if (e.kind === 'text' || e.kind === 'thinking') Object.assign(t, { kind: e.kind, text: e.text ?? '' });
  else if (e.kind === 'tool') Object.assign(t, { kind: 'tool', tool: e.tool ?? 'tool', call: e.call ?? '', text: e.command || (e.files ?? []).join('\n') || e.text || '' });
  else if (e.kind === 'error' || e.kind === 'retry' || e.kind === 'rate_limit') {
    const what = { error: 'Error', retry: `The model call is tried again${e.attempt ? ` (attempt ${e.attempt})` : ''}`, rate_limit: 'Limit of the provider' }[e.kind];
    Object.assign(t, { kind: 'wrong', text: [what, e.error || e.text].filter(Boolean).join(': ') });
  } else if (e.kind === 'session') t.text = e.model ? `Session with ${e.model}` : 'Session begins';
  else if (e.kind === 'end') t.text = ['The agent ended', e.cost_usd ? money(e.cost_usd) : ''].filter(Boolean).join(', ');
  else return null;
  if (t.kind === 'text' && t.text.trim() === '') return null;
  t.size = t.text.length;
  return t;
}

const same = (a: Turn, b: Turn) => (Object.keys(a) as (keyof Turn)[]).every((k) => a[k] === b[k]);

/**
 * turns are those of parts; whole are the keys of texts that are shown in full.
 * A turn of before that is as it was stays the same object, so that a page
 * draws only what is new.
 */
export function turns(parts: readonly Said[], whole: ReadonlySet<number>, before: readonly Turn[] = []): Turn[] {
  const list: Turn[] = [];
  let to = parts[0]?.offset ?? 0;
  for (const p of parts) {
    if (p.offset > to) list.push({ ...blank(-p.offset), text: `${bytes(p.offset - to)} were left out here: of a very long conversation the beginning and the end are kept.` });
    to = p.next;
    for (const e of p.events) {
      if (e.kind === 'tool_end') {
        // Without an id, results come in the order of their calls.
        const start = e.call ? list.findLast((o) => o.call === e.call) : list.find((o) => o.kind === 'tool' && !o.over && (!e.tool || o.tool === e.tool));
        if (start) Object.assign(start, { over: true, failed: e.failed ?? false, result: e.result ?? '' });
        continue;
      }
      const t = read(e);
      if (!t) continue;
      if (t.size > long && !whole.has(t.key)) t.text = t.text.slice(0, long);
      list.push(t);
    }
  }
  const known = new Map(before.map((t) => [t.key, t]));
  return list.map((t) => {
    const was = known.get(t.key);
    return was && same(was, t) ? was : t;
  });
}
