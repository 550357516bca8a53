// The stream of events of a whole browser. A browser opens few connections to
// one server, so its pages share one stream, which lives in a worker of theirs
// (stream.worker.ts); where there are no such workers each page has its own.
//
//	closed ──open──> connecting ──hello──> live ──error, bye, dropped──> away ──1 s, 2 s, … 10 s──> connecting
//
// Nothing is missed: the place of the last event is kept, and the stream goes on
// from there. What a stream has brought is kept by the browser until it is
// closed, so it is opened anew now and then.

/** State is how the stream is. */
export type State = 'connecting' | 'live' | 'away';

/** Message is what a page receives: an event of the server, or the state of the stream. */
export interface Message {
  kind: string;
  /** JSON as the server sent it; of a state its name. */
  data: string;
  /** id is the place of an event that has one. */
  id: string;
}

/** Said is what a page tells the worker. */
export interface Said {
  word: 'here' | 'leave' | 'look';
  key: string;
}

/** Joined is what a page is told that comes to a stream which is open already. */
export interface Joined {
  cursor: string;
  version: string;
  now: string;
}

const kinds = ['hello', 'journal', 'case', 'activity', 'output', 'changed', 'beat', 'reset', 'dropped', 'bye'];
const silence = 35_000; // the server says something every 10 s
const full = 4_000_000; // characters after which a stream is opened anew

/** wait is how long after the nth failure in a row to try again, in ms. */
export const wait = (failures: number) => Math.min(10_000, 500 * 2 ** Math.min(failures, 10));

export class Stream {
  state: State = 'connecting';
  place = '';
  private version = '';
  private ahead = 0; // of the server's clock
  private source: EventSource | null = null;
  private failures = 0;
  private again: ReturnType<typeof setTimeout> | undefined;
  private heard = 0;
  private brought = 0;

  /** key is that of the pages, see session.ts. */
  key = '';

  constructor(private readonly send: (m: Message) => void) {
    // A machine that slept comes back with a connection that is dead and does not say so.
    setInterval(() => this.look(), 5_000);
  }

  /** joined is what a page that comes now has to know; null when the stream is not open. */
  joined(): Joined | null {
    if (this.state !== 'live') return null;
    return { cursor: this.place, version: this.version, now: new Date(Date.now() + this.ahead).toISOString() };
  }

  /** open opens the stream, at once also when it waits to try again. */
  open(): void {
    this.close();
    const source = new EventSource(`/api/v1/events?key=${this.key}` + (this.place ? `&after=${this.place}` : ''));
    this.source = source;
    this.heard = Date.now();
    this.brought = 0;
    for (const kind of kinds) {
      source.addEventListener(kind, (e: MessageEvent<string>) => {
        if (this.source === source) this.take(kind, e);
      });
    }
    source.onerror = () => {
      if (this.source === source) this.lost();
    };
  }

  close(): void {
    clearTimeout(this.again);
    this.source?.close();
    this.source = null;
  }

  get closed(): boolean {
    return this.source === null;
  }

  /** look finds a connection that is dead. */
  look(): void {
    if (this.source && this.state === 'live' && Date.now() - this.heard > silence) this.lost();
  }

  private take(kind: string, e: MessageEvent<string>): void {
    this.heard = Date.now();
    this.brought += e.data.length;
    if (kind === 'dropped' || kind === 'bye') return this.lost();
    if (kind === 'hello') {
      const d = JSON.parse(e.data) as Joined;
      this.version = d.version;
      this.ahead = Date.parse(d.now) - Date.now();
      if (!this.place) this.place = d.cursor;
      this.failures = 0;
      this.turn('live');
    }
    this.send({ kind, data: e.data, id: e.lastEventId });
    if (e.lastEventId) this.place = e.lastEventId;
    if (this.brought > full && this.state === 'live') this.open();
  }

  private lost(): void {
    this.close();
    this.turn('away');
    this.again = setTimeout(() => this.open(), wait(this.failures++));
  }

  private turn(state: State): void {
    this.state = state;
    this.send({ kind: 'state', data: state, id: '' });
  }
}
