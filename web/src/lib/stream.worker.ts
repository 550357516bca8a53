// Hands the one stream of a browser to all its pages: see stream.ts.
//
// A page says here when it comes and every while, and leave when it goes; with
// it the pages' key, since a worker cannot read what the pages keep. One
// that has not been heard of for long is gone without a word.

import { Stream, type Message, type Said } from './stream';

interface SharedWorkerScope {
  onconnect: (e: MessageEvent) => void;
}

const pages = new Map<MessagePort, number>();
const patience = 150_000; // a page that cannot be seen speaks once a minute

/** acts are what runs do, as it was said last: a page that comes is told too. */
const acts = new Map<string, Message>();

const stream = new Stream((t: Message) => {
  if (t.kind === 'activity') acts.set((JSON.parse(t.data) as { run: string }).run, t);
  if (t.kind === 'journal' && t.data.includes('"kind":"finished"'))
    acts.delete((JSON.parse(t.data) as { run: string }).run);
  for (const page of pages.keys()) page.postMessage(t);
});

function leave(page: MessagePort): void {
  pages.delete(page);
  if (pages.size === 0) stream.close();
}

function hear(page: MessagePort, { word, key }: Said): void {
  stream.key = key;
  if (word === 'leave') return leave(page);
  const fresh = !pages.has(page);
  pages.set(page, Date.now());
  if (word === 'look') stream.look();
  if (!fresh) return;
  if (pages.size === 1 && stream.closed) stream.open();
  const joined = stream.joined();
  if (joined) {
    page.postMessage({ kind: 'join', data: JSON.stringify(joined), id: '' } satisfies Message);
    for (const act of acts.values()) page.postMessage(act);
  } else page.postMessage({ kind: 'state', data: stream.state, id: '' } satisfies Message);
}

(self as unknown as SharedWorkerScope).onconnect = (e) => {
  const page = e.ports[0]!;
  page.onmessage = (m: MessageEvent<Said>) => hear(page, m.data);
};

setInterval(() => {
  for (const [page, heard] of pages) if (Date.now() - heard > patience) leave(page);
}, 30_000);
