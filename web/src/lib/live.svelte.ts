// Live events: this page's end of the stream (stream.ts).
//
// A page that cannot be seen leaves after a while, unless it is to say when a person is needed;
// when it is seen again and something has happened since, it loads its data anew.

import { alerts } from './alerts.svelte';
import { get, Problem, type Activity } from './api';
import { clock } from './clock.svelte';
import { coalesce } from './coalesce';
import { trackGone } from './gone';
import { notes } from './notes.svelte';
import { key } from './session';
import { Stream, type Joined, type Message, type Said, type State } from './stream';

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

/** Grown is how much a running agent has printed. */
export interface Grown {
  run: string;
  iteration: number;
  attempt: number;
  events: number;
  output: number;
}

/** Listener is told of everything; reset says that too much was missed. */
export interface Listener {
  journal?(e: Happened): void;
  change?(e: Changed): void;
  activity?(e: Activity): void;
  output?(e: Grown): void;
  /** other is the queue or the autopilot, which have no events of their own. */
  other?(what: string): void;
  /** hello: the stream is there, again; what has no place in it may have been missed. */
  hello?(): void;
  reset?(): void;
}

const rest = 60_000; // how long a hidden page stays
const speak = 30_000; // how often it says that it is there
const slow = 4_000; // after this the worker is not waited for

class Live {
  state = $state<State | 'resting'>('connecting');
  /** unreachable: something could not be loaded, and is when the server answers again. */
  unreachable = $state(false);
  /** ended: the server answers, but has another token than this page. */
  ended = $state(false);
  /** asks whether it has, some time after the server went away. */
  private asks?: ReturnType<typeof setTimeout>;
  version = '';
  private listeners = new Set<Listener>();
  private late = new Set<() => void>();
  private port: MessagePort | null = null;
  private own: Stream | null = null;
  private place = '';
  private hidden: ReturnType<typeof setTimeout> | undefined;
  private known: () => void = () => undefined;
  /** ready: from now on nothing is missed by who loads, or the server is away. */
  readonly ready = new Promise<void>((resolve) => (this.known = resolve));

  start(): void {
    document.addEventListener('visibilitychange', () => this.seen());
    addEventListener('online', () => this.say('look'));
    addEventListener('pagehide', () => this.leave());
    addEventListener('pageshow', (e) => e.persisted && this.come());
    setInterval(() => this.state !== 'resting' && this.say('here'), speak);
    this.share();
    this.say('here');
  }

  /** listen tells until the function that it returns is called. */
  listen(l: Listener): () => void {
    this.listeners.add(l);
    return () => this.listeners.delete(l);
  }

  /** loading is a load, see load, that the component which made it needs: none begins when it is gone. */
  loading(
    work: () => Promise<void>,
    gap: number,
    failed: (error: unknown) => void = (e) => notes.failed(e),
  ): () => void {
    const isGone = trackGone();
    return this.load(
      async () => (isGone() ? undefined : work()),
      gap,
      (e) => (isGone() ? undefined : failed(e)),
    );
  }

  /**
   * load returns a load of what the server knows, see coalesce. It begins when
   * nothing can be missed any more between it and the first event, and is done
   * again when the server could not be reached and is back. Other errors go to
   * failed.
   */
  load(work: () => Promise<void>, gap: number, failed: (error: unknown) => void = (e) => notes.failed(e)): () => void {
    const load: () => void = coalesce(
      async () => {
        await this.ready;
        await work();
      },
      gap,
      (e) => {
        if ((e as { code?: string }).code !== 'UNREACHABLE') return failed(e);
        this.late.add(load);
        this.unreachable = true;
      },
    );
    return load;
  }

  /** again loads what could not be loaded. */
  private again(): void {
    const late = [...this.late];
    this.late.clear();
    this.unreachable = false;
    for (const load of late) load();
  }

  /** share finds the worker of all pages; a page without one has a stream of its own. */
  private share(): void {
    if (!('SharedWorker' in window)) return this.alone();
    try {
      const worker = new SharedWorker(new URL('./stream.worker.ts', import.meta.url), { type: 'module' });
      const late = setTimeout(() => this.alone(), slow);
      worker.onerror = () => this.alone();
      worker.port.onmessage = (m: MessageEvent<Message>) => {
        clearTimeout(late);
        if (this.port === worker.port) this.take(m.data);
      };
      this.port = worker.port;
    } catch {
      this.alone();
    }
  }

  private alone(): void {
    this.say('leave');
    this.port = null;
    if (this.own) return;
    this.own = new Stream((t) => this.take(t));
    this.own.key = key();
    this.own.place = this.place;
    if (this.state !== 'resting') this.own.open();
  }

  private say(word: Said['word']): void {
    this.port?.postMessage({ word, key: key() } satisfies Said);
    if (!this.own) return;
    if (word === 'leave') this.own.close();
    else if (this.own.closed && this.own.state !== 'away') this.own.open();
    else this.own.look();
  }

  private seen(): void {
    clearTimeout(this.hidden);
    if (document.hidden) this.hidden = setTimeout(() => !alerts.on && this.leave(), rest);
    else if (this.state === 'resting') this.come();
    else this.say('look');
  }

  private leave(): void {
    this.say('leave');
    this.state = 'resting';
  }

  private come(): void {
    this.state = 'connecting';
    this.say('here');
  }

  private take(t: Message): void {
    if (this.state === 'resting') return;
    const data = <T>() => JSON.parse(t.data) as T;
    if (t.id) this.place = t.id;
    if (t.kind === 'state') this.turn(t.data as State);
    else if (t.kind === 'hello') this.hello(data());
    else if (t.kind === 'join') this.join(data());
    else if (t.kind === 'journal') this.tell((l) => l.journal?.(data()));
    else if (t.kind === 'case') this.tell((l) => l.change?.(data()));
    else if (t.kind === 'activity') this.tell((l) => l.activity?.(data()));
    else if (t.kind === 'output') this.tell((l) => l.output?.(data()));
    else if (t.kind === 'changed') this.tell((l) => l.other?.(data<{ what: string }>().what));
    else if (t.kind === 'reset') this.tell((l) => l.reset?.());
    else if (t.kind === 'beat') {
      clock.server(data<{ now: string }>().now);
      this.again();
      this.renew();
    }
  }

  private turn(state: State): void {
    this.state = state;
    if (state === 'live') this.ended = false;
    if (state !== 'away') return;
    this.known();
    this.asks ??= setTimeout(() => {
      this.asks = undefined;
      if (this.state !== 'away') return;
      get('/api/v1/autopilot', {}).catch((e: unknown) => (this.ended = e instanceof Problem && e.status === 401));
    }, 10_000);
  }

  /** hello: the server is there; what has an id and was missed comes now. */
  private hello(d: Joined): void {
    const again = this.place !== '';
    if (!again) this.place = d.cursor;
    this.meet(d);
    if (again) this.tell((l) => (l.hello?.(), l.other?.('queue'), l.other?.('autopilot'), l.other?.('repositories')));
  }

  /** join: the stream was there before this page; what this page missed does not come. */
  private join(d: Joined): void {
    const missed = this.place !== '' && this.place !== d.cursor;
    const again = this.place !== '';
    this.place = d.cursor;
    this.turn('live');
    this.meet(d);
    if (missed) this.tell((l) => l.reset?.());
    if (again) this.tell((l) => (l.hello?.(), l.other?.('queue'), l.other?.('autopilot'), l.other?.('repositories')));
  }

  private meet(d: Joined): void {
    if (!this.version) this.version = d.version;
    this.newer = d.version;
    clock.server(d.now);
    this.known();
    this.again();
    this.renew();
  }
  private newer = '';

  /** renew loads the pages of a pawl that was updated, when that takes no text away. */
  private renew(): void {
    if (this.newer === this.version) return;
    const at = document.activeElement;
    if (
      document.querySelector('dialog[open]') ||
      [...document.querySelectorAll('textarea')].some((t) => t.value !== '') ||
      (at instanceof HTMLElement && at.matches('input, textarea, select'))
    )
      return;
    location.reload();
  }

  private tell(what: (l: Listener) => void): void {
    for (const l of this.listeners) what(l);
  }
}

export const live = new Live();
