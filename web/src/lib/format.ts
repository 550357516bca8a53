// How numbers, times and texts of others look. Nothing here knows of pages.

const bidi: Record<string, string> = {
  '\u061c': 'ALM',
  '\u200e': 'LRM',
  '\u200f': 'RLM',
  '\u202a': 'LRE',
  '\u202b': 'RLE',
  '\u202c': 'PDF',
  '\u202d': 'LRO',
  '\u202e': 'RLO',
  '\u2066': 'LRI',
  '\u2067': 'RLI',
  '\u2068': 'FSI',
  '\u2069': 'PDI',
};

// eslint would call these control characters suspicious; they are the point.
const odd = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u0080-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * visible makes characters that can change how a text reads into signs that
 * can be seen: controls become their pictures (␛), marks of direction their
 * names in brackets. Tabs and ends of lines stay.
 */
export function visible(text: string): string {
  return text.replace(odd, (c) => {
    const name = bidi[c];
    if (name) return `⟦${name}⟧`;
    const code = c.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? '␡' : `⟦${code.toString(16).toUpperCase()}⟧`;
  });
}

/** short is a text of at most limit characters, visible, and on one line. */
export function short(text: string, limit = 300): string {
  const one = text.length > limit * 4 ? text.slice(0, limit * 4) : text;
  const flat = visible(one.replace(/\s+/g, ' ').trim());
  return flat.length > limit || one !== text ? flat.slice(0, limit) + '…' : flat;
}

/** duration is seconds in words: 0.4s, 42s, 3m 10s, 1h 04m, 2d 3h. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return '–';
  if (seconds < 10 && seconds % 1 >= 0.05) return `${seconds.toFixed(1)}s`;
  const s = Math.round(seconds);
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${pad(s % 60)}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${pad(Math.floor((s % 3600) / 60))}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor((s % 86400) / 3600)}h`;
}

const pad = (n: number) => String(n).padStart(2, '0');

/** whole is a duration without fractions, for clocks that run. */
export const whole = (seconds: number) => duration(Math.floor(Math.max(0, seconds)));

/** round is a duration that somebody set, without what is zero: 10m, 1h, 1m 30s. */
export const round = (seconds: number) => duration(seconds).replace(/ 00[ms]$/, '');

/** money is US dollars; null is not known. */
export function money(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return '–';
  if (usd > 0 && usd < 0.005) return '<$0.01';
  return usd >= 1000 ? `$${Math.round(usd).toLocaleString('en-US')}` : `$${usd.toFixed(2)}`;
}

/** count shortens large numbers: 950, 12.3k, 4.1M. */
export function count(n: number): string {
  if (Math.abs(n) < 1000) return String(Math.round(n));
  for (const [limit, unit] of [
    [1e6, 'k'],
    [1e9, 'M'],
    [1e12, 'G'],
  ] as const) {
    if (Math.abs(n) < limit) {
      const value = n / (limit / 1000);
      return (value < 99.95 ? value.toFixed(1).replace(/\.0$/, '') : Math.round(value)) + unit;
    }
  }
  return n.toExponential(1);
}

/** bytes in units of 1024. */
export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  let value = n / 1024;
  for (const unit of ['KiB', 'MiB', 'GiB']) {
    if (value < 1024 || unit === 'GiB') return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
    value /= 1024;
  }
  return '';
}

/** plural counts things: 1 file, 2 files. */
export const plural = (n: number, one: string, many = one + 's') =>
  `${n.toLocaleString('en-US')} ${n === 1 ? one : many}`;

/** percent of a share from 0 to 1. */
export const percent = (share: number) => `${Math.round(share * 100)}%`;

/**
 * ago says how long before now a time was. Clocks of server and browser
 * differ: a time that is a little ahead is now.
 */
export function ago(at: number, now: number): string {
  const s = Math.round((now - at) / 1000);
  if (s < -90) return `in ${coarse(-s)}`;
  return s < 5 ? 'just now' : `${coarse(s)} ago`;
}

function coarse(s: number): string {
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  if (s < 86400) return `${Math.floor(s / 3600)}h`;
  if (s < 86400 * 60) return `${Math.floor(s / 86400)}d`;
  return `${Math.floor(s / (86400 * 30))} months`;
}

/** exact is a time for a title, in the person's own zone. */
export function exact(at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

/** said is a text as it may be spoken or put into a title: one line, bounded. */
export const said = (text: string) => short(text, 160);

/** inBrowser leaves out lines that say what to type: here there are buttons, but for the server itself. */
export const inBrowser = (lines: readonly string[]) => lines.filter((l) => !/(^|[\s'`(])pawl (?!serve\b)[a-z]/.test(l));

/** titled is a run's name with what it is to do, where somebody said so. */
export const titled = (run: { name: string; work?: string | undefined }) =>
  run.work ? `${run.name}: ${run.work}` : run.name;

/** withoutTags is a text of an agent in which a signal is its words: "<promise>COMPLETE</promise>" is "COMPLETE". */
export const withoutTags = (text: string) => text.replace(/<\/?promise>/g, '');
