// What needs no browser.

import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Painter, plain } from '../src/lib/ansi';
import { address } from '../src/lib/api';
import { coalesce } from '../src/lib/coalesce';
import { daysUntil, shortDay } from '../src/lib/days';
import { pairs, rows, segments, spelled, threads, wrapped, type Comment } from '../src/lib/diff';
import { fits, haystack, readFilter } from '../src/lib/filter';
import { ago, bytes, count, duration, money, short, visible } from '../src/lib/format';
import { isPlain, markdown, spans, type Block, type Span } from '../src/lib/markdown';
import { paint } from '../src/lib/paint';
import { moved } from '../src/lib/order';
import { Piece, placeOf, tall } from '../src/lib/parts';
import { Newest } from '../src/lib/newest';
import { long, turns } from '../src/lib/talk';
import { expected, limitsOf, progress, readStats, timeOfDay } from '../src/lib/sprint';
import { scrollFor, windowOf } from '../src/lib/window';

test('a sprint names the limits of a task that it takes from the configuration', () => {
  const all = [
    { path: 'autopilot.task_timeout', value: '45m', set: true },
    { path: 'loop.failure_threshold', value: '3', set: false },
    { path: 'loop.stuck_threshold', value: '0', set: true },
  ];
  assert.deepEqual(limitsOf(all), ['ends after 45m', 'failed iterations in a row: 5']);
  assert.deepEqual(limitsOf([{ ...all[1]!, set: true }]), ['failed iterations in a row: 3']);
});

test('durations, money and sizes', () => {
  assert.equal(duration(0.42), '0.4s');
  assert.equal(duration(42), '42s');
  assert.equal(duration(190), '3m 10s');
  assert.equal(duration(3840), '1h 04m');
  assert.equal(duration(-1), '–');
  assert.equal(money(null), '–');
  assert.equal(money(0.001), '<$0.01');
  assert.equal(money(2.5), '$2.50');
  assert.equal(count(12_345), '12.3k');
  assert.equal(count(999_950), '1000k');
  assert.equal(bytes(1536), '1.5 KiB');
});

test('a clock that is a little behind makes no time to come', () => {
  assert.equal(ago(60_000, 0), 'just now');
  assert.equal(ago(0, 61_000), '1m ago');
  assert.equal(ago(600_000, 0), 'in 10m');
});

test('characters that change how a text reads can be seen', () => {
  assert.equal(visible('a\u202egnp.exe'), 'a⟦RLO⟧gnp.exe');
  assert.equal(visible('a\u001b[31m\u0007'), 'a␛[31m␇');
  assert.equal(visible('a\tb\nc'), 'a\tb\nc');
  assert.equal(short('x'.repeat(1_000_000), 10), 'xxxxxxxxxx…');
  assert.equal(short('  a\n b  '), 'a b');
});

test('a filter reads words, tags and operations', () => {
  const c = { id: 'task-007', title: 'Find Customers', tags: ['Search', 'ui'], parent: 'op-003' };
  const ok = (text: string) => fits(c, haystack(c), readFilter(text));
  assert.ok(ok('find cust'));
  assert.ok(ok('#search -#billing'));
  assert.ok(ok('tag:ui in:op-003 007'));
  assert.ok(!ok('#sear'));
  assert.ok(!ok('-#ui'));
  assert.ok(!ok('in:op-004'));
});

test('a window is what is in view, and a few rows more', () => {
  assert.deepEqual(windowOf(0, 100, 20, 1000, 2), { from: 0, to: 8 });
  assert.deepEqual(windowOf(2000, 100, 20, 1000, 2), { from: 98, to: 108 });
  assert.deepEqual(windowOf(2000, 100, 20, 3, 2), { from: 1, to: 3 });
  assert.equal(scrollFor(10, 20, 0, 100), 120);
  assert.equal(scrollFor(2, 20, 100, 100), 40);
  assert.equal(scrollFor(6, 20, 100, 100), 100);
});

test('a diff numbers its lines and pairs what was replaced', () => {
  const list = rows([
    {
      old_start: 3,
      new_start: 3,
      heading: 'func f()',
      lines: [' a', '-const x = 1;', '+const x = 2;', '+b', ' c', '\\ No newline at end of file'],
    },
  ]);
  assert.deepEqual(
    list.map((r) => [r.kind, r.before, r.after]),
    [
      ['hunk', 3, 3],
      ['same', 3, 3],
      ['removed', 4, 0],
      ['added', 0, 4],
      ['added', 0, 5],
      ['same', 5, 6],
      ['note', 0, 0],
    ],
  );
  assert.deepEqual(
    pairs(list).map((p) => [p.left?.text, p.right?.text]),
    [
      [undefined, undefined],
      ['a', 'a'],
      ['const x = 1;', 'const x = 2;'],
      [undefined, 'b'],
      ['c', 'c'],
      [undefined, undefined],
    ],
  );
});

test('what changed within a line is marked', () => {
  const [, a, b] = rows([{ old_start: 1, new_start: 1, heading: '', lines: ['-const x = 1;', '+const x = 20;'] }]);
  assert.deepEqual(a!.mark, [10, 11]);
  assert.deepEqual(b!.mark, [10, 12]);
});

test('colours of a terminal become classes, and what else it is told is nothing', () => {
  const p = new Painter();
  assert.deepEqual(p.line('\u001b[1;31mred\u001b[0m plain\u001b[2K'), [
    { text: 'red', style: 'a-red a-bold' },
    { text: ' plain', style: '' },
  ]);
  assert.deepEqual(p.line('\u001b[32mgreen'), [{ text: 'green', style: 'a-green' }]);
  assert.deepEqual(p.line('goes on'), [{ text: 'goes on', style: 'a-green' }]);
  assert.deepEqual(new Painter().line('10%\r100%'), [{ text: '100%', style: '' }]);
  assert.equal(plain('\u001b]0;owned\u0007<b>x</b>'), '<b>x</b>');
});

test('parts of a stream join, grow at both ends and let go', () => {
  const held = { weigh: (p: { next: number; offset: number }) => p.next - p.offset, most: 20 };
  const part = (offset: number, next: number) => ({ offset, next, size: 1000 });
  const middle = Piece.of(part(100, 106), held);
  const more = middle.after(part(106, 111));
  assert.ok(more);
  assert.equal(middle.after(part(90, 95)), false);
  assert.equal(middle.after(part(106, 106)), false);
  const whole = more.before(part(96, 100));
  assert.ok(whole);
  assert.deepEqual([whole.from, whole.to], [96, 111]);
  assert.equal(whole.shared(middle), middle.parts[0]);
  // What was left out is no reason not to go on.
  const later = whole.after(part(500, 510));
  assert.ok(later);
  assert.deepEqual([later.from, later.to], [106, 510]);
  let p = Piece.of(part(0, 1), held);
  for (let i = 1; i < 50; i++) p = p.after(part(i, i + 1)) || p;
  assert.deepEqual([p.from, p.to], [30, 50]);
  assert.equal(placeOf(tall(700_000_000, 1_000_000_000), 1_000_000_000), 700_000_000);
});

test('turns of a conversation are drawn once', () => {
  const text = (offset: number, text: string) => ({ offset, kind: 'text' as const, text });
  const call = { offset: 20, kind: 'tool' as const, tool: 'Bash', call: 'c', command: 'ls' };
  const first = { offset: 0, next: 30, size: 90, events: [text(0, 'a'), text(10, ' '), call] };
  const one = turns([first], new Set());
  assert.deepEqual(
    one.map((t) => [t.key, t.kind, t.text, t.over]),
    [
      [0, 'text', 'a', false],
      [20, 'tool', 'ls', false],
    ],
  );
  const end = { offset: 40, kind: 'tool_end' as const, call: 'c', result: 'x', failed: true };
  const two = turns([first, { offset: 40, next: 60, size: 90, events: [end, text(50, 'b')] }], new Set());
  assert.deepEqual(
    two.map((t) => [t.key, t.kind, t.over]),
    [
      [0, 'text', false],
      [20, 'tool', true],
      [-40, 'note', false],
      [50, 'text', false],
    ],
  );
  assert.equal(two[0], one[0]);
  assert.notEqual(
    two.find((t) => t.key === 20),
    one[1],
  );
  assert.deepEqual([one[1]!.over, two[1]!.over, two[1]!.result, two[1]!.failed], [false, true, 'x', true]);
  assert.equal(turns([{ ...first, events: [text(0, 'x'.repeat(long + 1))] }], new Set())[0]!.text.length, long);
});

test('days without events stand in the picture', () => {
  assert.deepEqual(daysUntil(['2026-02-01'], '2026-02-03', 30).slice(-3), ['2026-02-01', '2026-02-02', '2026-02-03']);
  assert.equal(daysUntil([], '2026-03-02', 30).length, 7);
  assert.equal(daysUntil(['2025-01-01'], '2026-03-02', 30).length, 30);
  assert.equal(shortDay('2026-02-03'), '3 Feb');
});

test('names in an address cannot leave it', () => {
  assert.equal(address('/api/v1/runs/{run}', { run: '../x?y' }), '/api/v1/runs/..%2Fx%3Fy');
  assert.equal(address('/a', {}, { q: 'a&b', none: '', no: false, n: 0 }), '/a?q=a%26b&n=0');
});

test('many reasons to load are one load, and one more after it', async () => {
  let begun = 0;
  const ends: (() => void)[] = [];
  const load = coalesce(
    () => (begun++, new Promise<void>((r) => ends.push(r))),
    0,
    (e) => assert.fail(String(e)),
  );
  load();
  load();
  load();
  assert.equal(begun, 1);
  ends[0]!();
  while (begun < 2) await new Promise((r) => setImmediate(r));
  ends[1]!();
  await new Promise((r) => setImmediate(r));
  assert.equal(begun, 2);
});

test('a sprint tells how far it is, and what is to be expected', () => {
  const f = readStats({
    target: { type: 'count', value: 20 },
    totalTasks: 23,
    completedTasks: 14,
    failedTasks: 2,
    taskStats: [{ startedAt: 0, completedAt: 60_000 }, { startedAt: 5, completedAt: 0 }, null],
  });
  assert.deepEqual(f.times, [60]);
  assert.deepEqual(progress(f, 0, 1000), { share: 0.7, text: '14/20 tasks | 2 failed | 20 tasks' });
  assert.equal(
    progress(readStats({ target: { type: 'duration', value: 2 }, completedTasks: 1 }), 0, 3_600_000).text,
    '1 tasks | 2 h | 1h 00m left',
  );
  assert.deepEqual(readStats('odd').target, { type: 'no_ready', value: '' });
  assert.deepEqual(expected({ type: 'no_ready', value: '' }, 7, 600, 2), { tasks: 7, seconds: 2400 });
  assert.deepEqual(expected({ type: 'duration', value: '1' }, 7, 1200, 1), { tasks: 3, seconds: 3600 });
  assert.equal(timeOfDay(Date.parse('2026-02-03T19:00:00'), '08:00'), Date.parse('2026-02-04T08:00:00'));
  assert.equal(timeOfDay(0, 'later'), 0);
});

/** said writes spans in short. */
const said = (list: Span[]): string =>
  list
    .map((s) =>
      s.kind === 'text'
        ? s.text
        : s.kind === 'code'
          ? `c(${s.text})`
          : s.kind === 'link'
            ? `a(${said(s.inner)}|${s.href})`
            : `${s.kind}(${said(s.inner)})`,
    )
    .join('');
/** laid writes blocks in short. */
const laid = (list: Block[]): string =>
  list
    .map((b) => {
      if (b.kind === 'text') return `p(${said(b.spans)})`;
      if (b.kind === 'heading') return `h${b.level}(${said(b.spans)})`;
      if (b.kind === 'code') return `pre${b.language && `.${b.language}`}(${b.text})`;
      if (b.kind === 'quote') return `q(${laid(b.blocks)})`;
      if (b.kind === 'table') return `table(${[b.head, ...b.rows].map((r) => r.map(said).join('|')).join(';')})`;
      if (b.kind === 'rule') return 'hr';
      return `${b.ordered ? `ol${b.start}` : 'ul'}(${b.items.map((i) => (i.done === undefined ? '' : i.done ? '[x]' : '[ ]') + laid(i.blocks)).join(';')})`;
    })
    .join(' ');

test('Markdown of agents is laid out', () => {
  assert.equal(
    laid(markdown('# Done\n\nI changed `a.ts` and **all** *its* ~~tests~~.\nIt passes.')),
    'h1(Done) p(I changed c(a.ts) and strong(all) em(its) del(tests).\nIt passes.)',
  );
  assert.equal(
    laid(markdown('- one\n- two\n  more\n  - inner\n\n- three')),
    'ul(p(one);p(two\nmore) ul(p(inner));p(three))',
  );
  assert.equal(laid(markdown('3. a\n4. b\n\ntext')), 'ol3(p(a);p(b)) p(text)');
  assert.equal(laid(markdown('- [ ] a\n- [x] b')), 'ul([ ]p(a);[x]p(b))');
  assert.equal(laid(markdown('```go\nx := "<b>"\n\n# no\n```\nafter')), 'pre.go(x := "<b>"\n\n# no) p(after)');
  assert.equal(laid(markdown('~~~\nnever closed')), 'pre(never closed)');
  assert.equal(laid(markdown('| a | b |\n|---|:-:|\n| 1 | `x\\|y` |\n| 2 |')), 'table(a|b;1|c(x|y);2|)');
  assert.equal(laid(markdown('> said\n> - so\n\n---')), 'q(p(said) ul(p(so))) hr');
  assert.equal(laid(markdown('text\n    at line (a.ts:3)\n\n    code\n')), 'p(text\n    at line (a.ts:3)) pre(code)');
});

test('what is no Markdown stays what it is', () => {
  assert.equal(said(spans('snake_case_name and 2 * 3 * 4 and a**b')), 'snake_case_name and 2 * 3 * 4 and a**b');
  assert.equal(
    said(spans('<script>alert(1)</script> <promise>COMPLETE</promise>')),
    '<script>alert(1)</script> <promise>COMPLETE</promise>',
  );
  assert.equal(said(spans('`` a`b `` and ` alone')), 'c(a`b) and ` alone');
  assert.equal(said(spans('\\*not\\* _so_ __very__ ***both***')), '*not* em(so) strong(very) em(strong(both))');
});

test('what is plain is one paragraph of itself', () => {
  const plainly = [
    'Step 3: the test of part 3 says what is missing, and I look.',
    'A (note), 50% done; it’s 2 + 2 = 4!',
    'http is a word',
    'شكرا',
  ];
  for (const text of plainly) assert.ok(isPlain(text), text);
  const others = [
    '# a',
    '- a',
    '+ a',
    '  - a',
    '1. a',
    '2) a',
    '> a',
    '    a',
    'a *b*',
    'a_b_',
    '`a`',
    '~~a~~',
    '[a](https://b.c)',
    'see https://example.com',
    'a\nb',
    '| a |',
    'a\\*',
    '<b>',
    ' a',
    'a ',
    '---',
    '***',
    '===',
    'a\rb',
  ];
  for (const text of others) assert.ok(!isPlain(text), text);
  const pieces = [
    'a',
    ' ',
    '1',
    '.',
    ')',
    '#',
    '-',
    '+',
    '*',
    '_',
    '`',
    '~',
    '[',
    ']',
    '(',
    '!',
    '\\',
    '>',
    '|',
    '=',
    ':',
    '//',
    'http',
    '\n',
  ];
  let seed = 7;
  for (let n = 0; n < 20_000; n++) {
    let text = '';
    for (let k = 0; k < 7; k++) text += pieces[(seed = (seed * 1103515245 + 12345) % 2147483648) % pieces.length]!;
    if (text && isPlain(text)) assert.equal(laid(markdown(text)), `p(${text})`);
  }
});

test('links lead to the web or nowhere', () => {
  assert.equal(
    said(spans('[a](https://example.com/x) and https://example.org/y.')),
    'a(a|https://example.com/x) and a(https://example.org/y|https://example.org/y).',
  );
  for (const bad of [
    'javascript:alert(1)',
    'data:text/html,x',
    'JaVaScRiPt:alert(1)',
    'file:///etc/passwd',
    '//evil.example',
    'src/a.ts',
    'vbscript:x',
  ])
    assert.equal(said(spans(`[a](${bad})`)).includes('a(a|'), false, bad);
  assert.equal(said(spans('![pixel](https://example.com/p.png)')), 'a(pixel|https://example.com/p.png)');
});

test('no text makes the work endless, and none is lost', () => {
  for (const piece of [
    '*',
    '`',
    '[',
    '_a',
    '**a ',
    '- ',
    '> ',
    '  - a\n',
    '|',
    '| a\n|-\n',
    '```',
    '\\',
    'http://',
    '[](',
    '* * *',
    '1. ',
  ]) {
    const text = piece.repeat(60_000 / piece.length);
    assert.ok(markdown(text).length > 0, piece);
    assert.ok(markdown(piece.repeat(1000)).length > 0, piece);
  }
  const words = 'alpha *beta* `gamma` [delta](epsilon) **zeta';
  for (const word of words.match(/[a-z]+/g)!) assert.ok(laid(markdown(words)).includes(word), word);
});

test('an older answer never takes the place of a newer one', () => {
  interface Item {
    id: string;
    now: string;
  }
  const item = (id: string, now: string): Item => ({ id, now });
  const newest = new Newest<Item>((i) => i.id);
  const [all, one, two] = [newest.ask(), newest.ask(), newest.ask()];
  // What was asked for first comes last.
  assert.ok(newest.take('a', two));
  assert.ok(!newest.take('a', one));
  assert.ok(newest.take('b', one)); // it is gone by now
  assert.ok(newest.take('new', one));
  const { list, more } = newest.merge(
    [item('a', 'running'), item('b', 'running'), item('c', 'running')],
    [item('a', 'paused'), item('c', 'old'), item('new', 'running')],
    all,
  );
  assert.deepEqual(list, [item('a', 'paused'), item('c', 'running')]);
  assert.deepEqual(more, [item('new', 'running')]);
  // What is asked for now is newest again, and what it does not have is gone.
  assert.deepEqual(newest.merge([item('a', 'done')], [...list, ...more], newest.ask()), {
    list: [item('a', 'done')],
    more: [],
  });
});

test('code has colours, as it was and as it is', () => {
  const list = rows([
    {
      old_start: 1,
      new_start: 1,
      heading: '',
      lines: [' // a <b>sum</b>', '-const n = "two";', '+const n = 2;', ' /* from here', '+ return */'],
    },
  ]);
  paint('src/Money.TS', list);
  const look = (i: number) => segments(list[i]!).map((s) => `${s.paint}${s.mark ? '!' : ''} ${s.text}`);
  assert.deepEqual(look(1), ['5 // a <b>sum</b>']);
  assert.deepEqual(look(2), ['1 const', '0  n = ', '2! "two"', '0 ;']);
  assert.deepEqual(look(3), ['1 const', '0  n = ', '4! 2', '0 ;']);
  assert.deepEqual(look(5), ['5  return */']);
  // What is broken into rows keeps them.
  const broken = wrapped(pairs(list), 8).find((p) => p.left?.text === 'const n ');
  assert.deepEqual(
    segments(broken!.left!).map((s) => s.text),
    ['const', ' n '],
  );
  // A file of nobody's language, and lines that a program made, stay plain.
  for (const [path, text] of [
    ['notes.unknown', 'const a = 1'],
    ['a.js', `const a = ${'1 + '.repeat(300)}1`],
  ] as const) {
    const plain = rows([{ old_start: 1, new_start: 1, heading: '', lines: [`+${text}`] }]);
    paint(path, plain);
    assert.deepEqual(
      segments(plain[1]!).map((s) => s.paint),
      [0],
    );
  }
});

test('a place is a priority, and few others change', () => {
  const list = (...priorities: number[]) => priorities.map((priority, i) => ({ id: 'abcdefgh'[i]!, priority }));
  // There is room between two.
  assert.deepEqual(moved(list(9, 3, 0), 2, 1), [['c', 4]]);
  assert.deepEqual(moved(list(0, 0, 0), 2, 0), [['c', 1]]);
  assert.deepEqual(moved(list(0, 0, 0), 0, 2), [['a', -1]]);
  // Those above go up together, and no more than they must.
  assert.deepEqual(moved(list(9, 1, 0, 0, 0), 4, 3), [
    ['e', 1],
    ['c', 2],
    ['b', 3],
  ]);
  assert.deepEqual(moved(list(2, 1, 1, 0), 3, 2), [
    ['d', 2],
    ['b', 3],
    ['a', 4],
  ]);
  assert.deepEqual(moved(list(0, 0, 0, 0), 0, 1), [
    ['a', 1],
    ['b', 2],
  ]);
});

test('comments are read back from what they were spelled as', () => {
  const list: Comment[] = [
    { file: 'src/a b.ts', line: 20, side: 'before', code: '  old: 1', text: 'This was right:\nkeep it' },
    { file: 'src/a b.ts', line: 20, side: 'after', code: 'new > old', text: 'Say why' },
  ];
  assert.deepEqual(threads(`approved in the browser\n${spelled(list)}`), list);
  assert.deepEqual(threads('write tests first\nfile.ts:3: not a comment of a review'), []);
});
