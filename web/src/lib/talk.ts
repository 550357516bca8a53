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

const blank = (key: number): Turn => ({
  key,
  kind: 'note',
  tool: '',
  call: '',
  over: false,
  result: '',
  text: '',
  size: 0,
  failed: false,
  sub: false,
});

function read(e: AgentEvent): Turn | null {
  const t = { ...blank(e.offset), sub: e.sub ?? false };
  if (e.kind === 'text' || e.kind === 'thinking') Object.assign(t, { kind: e.kind, text: e.text ?? '' });
  else if (e.kind === 'tool')
    Object.assign(t, {
      kind: 'tool',
      tool: e.tool ?? 'tool',
      call: e.call ?? '',
      text: e.command || (e.files ?? []).join('\n') || e.text || '',
    });
  else if (e.kind === 'error' || e.kind === 'retry' || e.kind === 'rate_limit') {
    const what = {
      error: 'Error',
      retry: `The model call is retried${e.attempt ? ` (attempt ${e.attempt})` : ''}`,
      rate_limit: 'Limit of the provider',
    }[e.kind];
    Object.assign(t, { kind: 'wrong', text: [what, e.error || e.text].filter(Boolean).join(': ') });
  } else if (e.kind === 'session') t.text = e.model ? `Session with ${e.model}` : 'Session started';
  else if (e.kind === 'end')
    t.text = ['The agent ended', e.cost_usd ? money(e.cost_usd) : ''].filter(Boolean).join(', ');
  else return null;
  if (t.kind === 'text' && t.text.trim() === '') return null;
  t.size = t.text.length;
  return t;
}

// What was made of an event is kept as long as the event: a page that follows a
// talkative agent makes each turn once, and draws only what is new.
const made = new WeakMap<AgentEvent, Turn | null>();
const cuts = new WeakMap<Turn, Turn>();
const ended = new WeakMap<AgentEvent, { start: Turn; turn: Turn }>();
const gaps = new WeakMap<Said, Turn>();

function kept<K extends object, V>(map: WeakMap<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

/** over is a tool call with its result. */
function over(e: AgentEvent, start: Turn): Turn {
  const known = ended.get(e);
  if (known?.start === start) return known.turn;
  const turn = { ...start, over: true, failed: e.failed ?? false, result: e.result ?? '' };
  ended.set(e, { start, turn });
  return turn;
}

/**
 * turns are those of parts; whole are the keys of texts that are shown in full.
 * A turn that is as it was is the same object as before.
 */
export function turns(parts: readonly Said[], whole: ReadonlySet<number>): Turn[] {
  const list: Turn[] = [];
  let to = parts[0]?.offset ?? 0;
  for (const p of parts) {
    const left = p.offset - to;
    if (left > 0)
      list.push(
        kept(gaps, p, () => ({
          ...blank(-p.offset),
          text: `${bytes(left)} were left out here: only the beginning and the end of a very long conversation are kept.`,
        })),
      );
    to = p.next;
    for (const e of p.events) {
      if (e.kind === 'tool_end') {
        // Without an id, results come in the order of their calls.
        const at = e.call
          ? list.findLastIndex((o) => o.call === e.call)
          : list.findIndex((o) => o.kind === 'tool' && !o.over && (!e.tool || o.tool === e.tool));
        if (at >= 0) list[at] = over(e, list[at]!);
        continue;
      }
      const t = kept(made, e, () => read(e));
      if (!t) continue;
      list.push(t.size > long && !whole.has(t.key) ? kept(cuts, t, () => ({ ...t, text: t.text.slice(0, long) })) : t);
    }
  }
  return list;
}
