// What the pages show of the server's state, kept up to date by the live
// stream. Lists are replaced, not changed, so a page sees a whole state.

import { SvelteMap } from 'svelte/reactivity';
import { get, type Activity, type Case, type Need, type Overview, type Run } from './api';
import { clock } from './clock.svelte';
import { coalesce } from './coalesce';
import { haystack } from './filter';
import { live, type Changed, type Happened } from './live.svelte';
import { notBegun } from './status';
import { notes } from './notes.svelte';

/** offset is how many minutes the person's clock is ahead of UTC. */
export const offset = () => -new Date().getTimezoneOffset();

/** here says where the person's days begin. */
export const here = () => ({ zone: Intl.DateTimeFormat().resolvedOptions().timeZone, offset: offset() });

/** asked are the kinds of events after which something may wait for a person. */
const rests = new Set(['paused', 'finished', 'question.asked', 'answered', 'run.resumed', 'run.created', 'rolled-back', 'stop.asked', 'pause.asked', 'limits.raised']);

class Store {
  overview = $state.raw<Overview | null>(null);
  inbox = $state.raw<Need[]>([]);
  inboxKnown = $state(false);
  runs = $state.raw<Run[]>([]);
  runsKnown = $state(false);
  cases = $state.raw<Case[]>([]);
  /** casesKnown: the first page is there; casesWhole: all of them. */
  casesKnown = $state(false);
  casesWhole = $state(false);
  unreachable = $state(false);
  /** gates are the checks as they are configured, none of them begun. */
  readonly gates = $derived(notBegun(this.overview?.gates ?? []));
  /** activity is what each run does just now. */
  readonly activity = new SvelteMap<string, Activity>();

  private readonly hay = new WeakMap<Case, string>();
  private wantsCases = false;
  private wantsRuns = false;
  private changed = new Set<string>();
  private touched = new Set<string>();

  readonly loadOverview = coalesce(
    async () => {
      await live.ready;
      this.overview = await get('/api/v1/overview', { query: here() });
      this.unreachable = false;
      clock.server(this.overview.now);
    },
    250,
    (e) => this.failed(e),
  );

  readonly loadInbox = coalesce(
    async () => {
      await live.ready;
      const before = this.inbox.length;
      this.inbox = (await get('/api/v1/inbox', {})).entries;
      if (this.inboxKnown && this.inbox.length > before) notes.say(`${this.inbox[0]!.title} needs you. ${this.inbox.length} in all.`);
      this.inboxKnown = true;
    },
    250,
    (e) => this.failed(e),
  );

  readonly loadRuns = coalesce(
    async () => {
      await live.ready;
      let cursor = '';
      const list: Run[] = [];
      do {
        const page = await get('/api/v1/runs', { query: { limit: 200, cursor } });
        list.push(...page.runs);
        cursor = page.next_cursor;
        if (!this.runsKnown) this.show(list);
      } while (cursor !== '' && list.length < 2000);
      this.show(list);
    },
    1000,
    (e) => this.failed(e),
  );

  private readonly loadTouched = coalesce(
    async () => {
      const ids = [...this.touched].slice(0, 50);
      for (const id of ids) this.touched.delete(id);
      const fresh = await Promise.all(ids.map((run) => get('/api/v1/runs/{run}', { path: { run } })));
      this.putRuns(fresh);
      if (this.touched.size > 0) this.loadTouched();
    },
    100,
    (e) => this.failed(e),
  );

  private readonly loadCases = coalesce(
    async () => {
      await live.ready;
      let cursor = '';
      const list: Case[] = [];
      do {
        const page = await get('/api/v1/cases', { query: { limit: list.length === 0 && !this.casesKnown ? 200 : 1000, cursor } });
        list.push(...page.cases);
        cursor = page.next_cursor;
        if (!this.casesKnown) this.putAll(list.slice());
      } while (cursor !== '');
      this.putAll(list);
      this.casesWhole = true;
      this.prepare(0);
    },
    2000,
    (e) => this.failed(e),
  );

  private readonly loadChanged = coalesce(
    async () => {
      const ids = [...this.changed];
      this.changed.clear();
      if (ids.length > 20) return this.loadCases();
      const fresh = await Promise.all(
        ids.map((id) =>
          get('/api/v1/cases/{id}', { path: { id } }).catch((e: unknown) => {
            if ((e as { status?: number }).status === 404) return id; // it was removed
            throw e;
          }),
        ),
      );
      this.putCases(fresh);
    },
    60,
    (e) => this.failed(e),
  );

  /** Every load waits until nothing can be missed between it and the first event. */
  start(): void {
    live.listen({ journal: (e) => this.journal(e), change: (e) => this.change(e), activity: (a) => this.activity.set(a.run, a), reset: () => this.reload() });
    this.loadOverview();
    this.loadInbox();
  }

  /** wantRuns loads all runs, and keeps them; wantCases all cases. */
  wantRuns(): void {
    if (!this.wantsRuns) this.loadRuns();
    this.wantsRuns = true;
  }

  wantCases(): void {
    if (!this.wantsCases) this.loadCases();
    this.wantsCases = true;
  }

  /** reload gets everything anew. */
  reload(): void {
    this.loadOverview();
    this.loadInbox();
    if (this.wantsRuns) this.loadRuns();
    if (this.wantsCases) this.loadCases();
  }

  private show(list: Run[]): void {
    this.runs = list.slice();
    this.runsKnown = true;
  }

  private failed(e: unknown): void {
    if ((e as { code?: string }).code === 'UNREACHABLE') this.unreachable = true;
    else notes.failed(e);
  }

  private journal(e: Happened): void {
    if (rests.has(e.kind) || e.kind === 'iteration.started') this.activity.delete(e.run);
    this.loadOverview();
    if (rests.has(e.kind)) this.loadInbox();
    if (e.run === 'autopilot' || e.run.startsWith('queue:')) return; // of no run
    this.touched.add(e.run);
    this.loadTouched();
  }

  private change(e: Changed): void {
    this.loadOverview();
    this.loadInbox();
    if (!this.wantsCases) return;
    this.changed.add(e.id);
    this.loadChanged();
    // What is done or gone makes others ready: their counters change unseen.
    if (e.to === 'done' || e.from === 'done' || e.action === 'remove' || e.action === 'edit' || e.action === 'block' || e.action === 'unblock') this.loadCases();
  }

  /** putRuns takes runs as they are now. */
  putRuns(fresh: Run[]): void {
    const by = new Map(fresh.map((r) => [r.run, r]));
    const list = this.runs.map((r) => {
      const now = by.get(r.run);
      by.delete(r.run);
      return now ?? r;
    });
    this.runs = [...[...by.values()].sort((a, b) => b.started_at.localeCompare(a.started_at)), ...list];
    const o = this.overview;
    if (!o) return;
    const working = fresh.filter((r) => r.status === 'running' || r.status === 'waiting');
    const others = o.active.filter((r) => !fresh.some((f) => f.run === r.run));
    const active = [...working, ...others].sort((a, b) => a.started_at.localeCompare(b.started_at) || a.run.localeCompare(b.run));
    this.overview = { ...o, active };
  }

  /** putCases takes cases as they are now; an id alone is one that is gone. */
  putCases(fresh: (Case | string)[]): void {
    const by = new Map<string, Case | null>();
    for (const c of fresh) by.set(typeof c === 'string' ? c : c.id, typeof c === 'string' ? null : c);
    const list: Case[] = [];
    for (const c of this.cases) {
      const now = by.get(c.id);
      if (now === undefined) list.push(c);
      else if (now) list.push(now);
      by.delete(c.id);
    }
    for (const c of by.values()) if (c) list.push(c);
    this.putAll(list);
  }

  /** text is that of a case in which a filter looks; it is made once. */
  text(c: Case): string {
    let hay = this.hay.get(c);
    if (hay === undefined) this.hay.set(c, (hay = haystack(c)));
    return hay;
  }

  /** prepare makes the texts for filters while nothing else is to be done. */
  private prepare(from: number): void {
    const list = this.cases;
    if (from >= list.length) return;
    setTimeout(() => {
      for (const c of list.slice(from, from + 500)) this.text(c);
      if (this.cases === list) this.prepare(from + 500);
    });
  }

  private putAll(list: Case[]): void {
    this.cases = list;
    this.casesKnown = true;
  }
}

export const store = new Store();
