// Days of runs, and days of statistics: those on which nothing happened are left out by the
// server, and stand in the picture all the same.

/** daysUntil lists the days from the first that has something to the last, at most so many, as 2006-01-02. */
export function daysUntil(known: string[], today: string, most: number): string[] {
  const first = known.reduce((a, b) => (a < b ? a : b), today);
  const out: string[] = [];
  for (let t = Date.parse(today + 'T00:00:00Z'); out.length < most; t -= 86_400_000) {
    const day = new Date(t).toISOString().slice(0, 10);
    out.unshift(day);
    if (day <= first && out.length >= 7) break;
  }
  return out;
}

/** shortDay is 3 Feb. */
export function shortDay(day: string): string {
  const at = new Date(day + 'T00:00:00Z');
  return `${at.getUTCDate()} ${at.toLocaleString('en-US', { month: 'short', timeZone: 'UTC' })}`;
}

/** days are runs by the day on which they began here; they are in order. */
export function days<T extends { started_at: string }>(runs: T[]): { day: string; runs: T[] }[] {
  const out: { day: string; runs: T[] }[] = [];
  for (const r of runs) {
    const day = new Date(r.started_at).toDateString();
    if (out.at(-1)?.day !== day) out.push({ day, runs: [] });
    out.at(-1)!.runs.push(r);
  }
  return out;
}
