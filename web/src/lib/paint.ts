// What the words of code are, for their colours: data, never HTML. It is loaded when code is shown.

import { common, createLowlight } from 'lowlight';
import type { Row } from './diff';

const low = createLowlight(common);
low.registerAlias({ xml: ['svelte', 'vue'], javascript: ['cts', 'mts'] });

/** kinds are names of words in grammars; a row's paint has the number for each character, 0 for what is plain. */
const kinds = new Map(
  [
    'keyword built_in selector-tag section tag',
    'string regexp char addition',
    'title name attr attribute property selector-class selector-id',
    'number literal symbol bullet type',
    'comment quote meta doctag deletion',
  ].flatMap((names, i) => names.split(' ').map((name): [string, number] => [`hljs-${name}`, i + 1])),
);

const longest = 1000; // characters of a line; what is longer was made by a program
const most = 60_000; // characters of a place

/** paint colours the rows of a file: each place for itself, as it was and as it is. */
export function paint(path: string, rows: Row[]): void {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  const language = [name.slice(name.lastIndexOf('.') + 1), name].find((l) => low.registered(l));
  if (!language) return;
  for (let from = 0, to; from < rows.length; from = to) {
    for (to = from + 1; to < rows.length && rows[to]!.kind !== 'hunk';) to++;
    const place = rows.slice(from, to);
    for (const side of ['removed', 'added'])
      lines(
        language,
        place.filter((r) => r.kind === side || r.kind === 'same'),
      );
  }
}

type Nodes = ReturnType<typeof low.highlight>['children'];

function lines(language: string, rows: Row[]): void {
  const text = rows.map((r) => r.text).join('\n');
  if (text.length > most || rows.some((r) => r.text.length > longest)) return;
  const all = new Uint8Array(text.length);
  let at = 0;
  const walk = (nodes: Nodes, kind: number) => {
    for (const n of nodes) {
      if (n.type === 'text') all.fill(kind, at, (at += n.value.length));
      else if (n.type === 'element') walk(n.children, kinds.get((n.properties.className as string[])[0]!) ?? kind);
    }
  };
  walk(low.highlight(language, text).children, 0);
  at = 0;
  for (const r of rows) r.paint = all.subarray(at, (at += r.text.length + 1) - 1);
}
