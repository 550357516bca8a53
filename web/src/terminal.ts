// The page of a terminal in a task's workspace. It is a page of its own, since xterm.js
// writes styles into it, which the policy of the other pages forbids. What is printed is an
// agent's, and goes to xterm.js as bytes.

import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import './app.css';
import './terminal.css';
import { address, explain, post } from './lib/api';
import { key } from './lib/session';

/** most is how many bytes of keys go at once, and after how many drawn ones the server hears of it. */
const most = 32 << 10;

const part = <E extends HTMLElement>(id: string) => document.getElementById(id) as E;
const [screen, state, again, reader] = [
  part('screen'),
  part('state'),
  part<HTMLButtonElement>('again'),
  part<HTMLButtonElement>('reader'),
];
const id = decodeURIComponent(location.pathname.split('/')[2] ?? '');
const task = part<HTMLAnchorElement>('task');
task.textContent = id;
task.href = `/board/${encodeURIComponent(id)}`;
document.title = `Terminal of ${id} · pawl`;

/** colours are those of the other pages. */
function colours() {
  const css = getComputedStyle(document.documentElement);
  const of = (name: string) => css.getPropertyValue(name).trim();
  return {
    background: of('--surface'),
    foreground: of('--ink'),
    cursor: of('--run'),
    cursorAccent: of('--surface'),
    selectionBackground: of('--run-tint'),
    selectionForeground: of('--ink'),
  };
}

const term = new Terminal({
  cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
  fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono').trim(),
  fontSize: 14,
  lineHeight: 1.25, // a row cuts what is lower: of some fonts the underscores
  linkHandler: { activate: () => undefined }, // an agent's links lead nowhere
  minimumContrastRatio: 4.5,
  scrollback: 5000,
  theme: colours(),
});
const fit = new FitAddon();
term.loadAddon(fit);
term.open(screen);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => (term.options.theme = colours()));

let socket: WebSocket | undefined;
const live = () => socket?.readyState === WebSocket.OPEN;
const say = (word: object) => live() && socket!.send(JSON.stringify(word));

function type(bytes: Uint8Array<ArrayBuffer>): void {
  for (let at = 0; live() && at < bytes.length; at += most) socket!.send(bytes.subarray(at, at + most));
}
term.onData((text) => type(new TextEncoder().encode(text)));
term.onBinary((text) => type(Uint8Array.from(text, (c) => c.charCodeAt(0))));
term.onResize(({ cols, rows }) => say({ columns: cols, rows }));
new ResizeObserver(() => fit.fit()).observe(screen);
// A shell ends with its page, and Ctrl W is a key of shells.
addEventListener('beforeunload', (e) => live() && e.preventDefault());

function ended(text: string): void {
  state.textContent = text;
  again.hidden = false;
}

async function open(): Promise<void> {
  again.hidden = true;
  state.textContent = 'Opening…';
  let ticket: string;
  try {
    ({ ticket } = await post('/api/v1/cases/{id}/terminal', { path: { id }, body: undefined }));
  } catch (error) {
    const problem = explain(error);
    return ended([problem.message, ...problem.suggestions].join('. '));
  }
  const url = new URL(address('/api/v1/terminal', {}, { ticket, key: key() }), location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  const mine = (socket = new WebSocket(url));
  mine.binaryType = 'arraybuffer';
  let [drawn, told] = [0, 0];
  mine.onopen = () => {
    state.textContent = 'Open. It ends when this page is closed.';
    term.reset();
    say({ columns: term.cols, rows: term.rows });
    term.focus();
  };
  mine.onmessage = (e: MessageEvent<ArrayBuffer>) => {
    const bytes = new Uint8Array(e.data);
    term.write(bytes, () => {
      drawn += bytes.length;
      if (drawn - told < most || socket !== mine) return;
      told = drawn;
      say({ seen: drawn });
    });
  };
  mine.onclose = (e) => ended(e.reason ? `Closed: ${e.reason}.` : 'The connection was lost.');
}

again.onclick = () => void open();
reader.onclick = () => {
  const on = !term.options.screenReaderMode;
  term.options.screenReaderMode = on;
  reader.setAttribute('aria-pressed', String(on));
  term.focus();
};
for (const [name, bytes] of [
  ['Esc', '\x1b'],
  ['Tab', '\t'],
  ['Ctrl C', '\x03'],
  ['Ctrl D', '\x04'],
  ['↑', '\x1b[A'],
  ['↓', '\x1b[B'],
  ['←', '\x1b[D'],
  ['→', '\x1b[C'],
] as const) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'btn';
  button.textContent = name;
  button.onpointerdown = (e) => e.preventDefault(); // the keyboard of a phone stays
  button.onclick = () => {
    type(new TextEncoder().encode(bytes));
    term.focus();
  };
  part('keys').append(button);
}
void open();
