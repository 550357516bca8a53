// What happens, as it happens: one stream for the whole page.
//
//   closed ──open──> connecting ──hello──> live ──error, bye, dropped──> away ──1 s, 2 s, … 10 s──> connecting
//
// A page that cannot be seen lets its stream go after a while, since a browser
// has few connections to one server. Nothing is missed: the place of the last
// event is kept, and the stream goes on from there.

import type { Activity } from './api';
import { clock } from './clock.svelte';

/** Happened is an event of the journal. */
export interface Happened {
  seq: number;
  run: string;
  at: string;
  kind: string;
  data: unknown;
}

/** Changed is a change of a case. */
export interface Changed {
  id: string;
  at: string;
  action: string;
  from: string;
  to: string;
}

/** Listener is told of everything; reset says that too much was missed. */
export interface Listener {
  journal?(e: Happened): void;
  change?(e: Changed): void;
  activity?(e: Activity): void;
  /** other is the queue or the autopilot, which have no events of their own. */
  other?(what: string): void;
  reset?(): void;
}

const rest = 60_000; // how long a hidden page keeps its stream

/** wait is how long after the nth failure in a row to try again, in ms. */
export const wait = (failures: number) => Math.min(10_000, 500 * 2 ** Math.min(failures, 10));

class Live {
  state = $state<'connecting' | 'live' | 'away' | 'resting'>('connecting');
  version = $state('');
  private listeners = new Set<Listener>();
  private source: EventSource | null = null;
  private place = '';
  private failures = 0;
  private again: ReturnType<typeof setTimeout> | undefined;
  private hidden: ReturnType<typeof setTimeout> | undefined;
  private heard = 0;

  start(): void {
    document.addEventListener('visibilitychange', () => this.seen());
    addEventListener('online', () => this.open());
    // A machine that slept comes back with a connection that is dead and does not say so.
    setInterval(() => {
      if (this.state === 'live' && Date.now() - this.heard > 35_000) this.lost();
    }, 5_000);
    this.open();
  }

  /** listen tells until the function that it returns is called. */
  listen(l: Listener): () => void {
    this.listeners.add(l);
    return () => this.listeners.delete(l);
  }

  private seen(): void {
    clearTimeout(this.hidden);
    if (!document.hidden) {
      if (!this.source) this.open();
      return;
    }
    this.hidden = setTimeout(() => {
      this.close();
      this.state = 'resting';
    }, rest);
  }

  private close(): void {
    clearTimeout(this.again);
    this.source?.close();
    this.source = null;
  }

  private open(): void {
    this.close();
    const source = new EventSource('/api/v1/events' + (this.place ? `?after=${this.place}` : ''));
    this.source = source;
    const on = (kind: string, take: (data: never) => void) =>
      source.addEventListener(kind, (e: MessageEvent<string>) => {
        if (this.source !== source) return;
        this.heard = Date.now();
        take(JSON.parse(e.data) as never);
        if (e.lastEventId) this.place = e.lastEventId;
      });
    on('hello', (d: { cursor: string; version: string; now: string }) => this.hello(d));
    on('journal', (d: Happened) => this.tell((l) => l.journal?.(d)));
    on('case', (d: Changed) => this.tell((l) => l.change?.(d)));
    on('activity', (d: Activity) => this.tell((l) => l.activity?.(d)));
    on('changed', (d: { what: string }) => this.tell((l) => l.other?.(d.what)));
    on('beat', (d: { now: string }) => clock.server(d.now));
    on('reset', () => this.tell((l) => l.reset?.()));
    on('dropped', () => this.lost());
    on('bye', () => this.lost());
    source.onerror = () => {
      if (this.source === source) this.lost();
    };
  }

  private hello(d: { cursor: string; version: string; now: string }): void {
    // After an update of pawl the pages of the new one are loaded.
    if (this.version && this.version !== d.version) location.reload();
    this.version = d.version;
    if (!this.place) this.place = d.cursor;
    this.failures = 0;
    this.state = 'live';
    clock.server(d.now);
  }

  private lost(): void {
    this.close();
    this.state = 'away';
    this.again = setTimeout(() => this.open(), wait(this.failures++));
  }

  private tell(what: (l: Listener) => void): void {
    for (const l of this.listeners) what(l);
  }
}

export const live = new Live();
