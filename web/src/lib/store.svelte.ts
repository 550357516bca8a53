// What the pages show of the server's state, kept up to date by the live
// stream. Lists are replaced, not changed, so a page sees a whole state.

import { SvelteMap } from 'svelte/reactivity';
import { alerts } from './alerts.svelte';
import { get, type Activity, type Case, type Need, type Overview, type Repository, type Run } from './api';
import { clock } from './clock.svelte';
import { haystack } from './filter';
import { live, type Changed, type Happened } from './live.svelte';
import { Newest } from './newest';
import { notes } from './notes.svelte';
import { notBegun, works } from './status';

/** offset is how many minutes the person's clock is ahead of UTC. */
export const offset = () => -new Date().getTimezoneOffset();

/** here says where the person's days begin. */
export const here = () => ({ zone: Intl.DateTimeFormat().resolvedOptions().timeZone, offset: offset() });

/** asked are the kinds of events after which something may wait for a person. */
const rests = new Set([
  'paused',
  'finished',
  'question.asked',
  'answered',
  'run.resumed',
  'run.created',
  'rolled-back',
  'stop.asked',
  'pause.asked',
  'limits.raised',
]);

/** inOrder are agents running, the longest first. */
const inOrder = (runs: Run[]) =>
  runs.sort((a, b) => a.started_at.localeCompare(b.started_at) || a.run.localeCompare(b.run));

/**
 * each asks for those of a set and takes them out of it; one that is gone is
 * undefined. When one cannot be asked for, all stay in the set.
 */
async function each<T>(
  set: Set<string>,
  ids: string[],
  ask: (id: string) => Promise<T>,
): Promise<Map<string, T | undefined>> {
  for (const id of ids) set.delete(id);
  try {
    return new Map(
      await Promise.all(
        ids.map(async (id): Promise<[string, T | undefined]> => {
          try {
            return [id, await ask(id)];
          } catch (e) {
            if ((e as { status?: number }).status === 404) return [id, undefined];
            throw e;
          }
        }),
      ),
    );
  } catch (e) {
    for (const id of ids) set.add(id);
    throw e;
  }
}

/** named is what tells one thing that needs a person from another. */
const named = (n: Need) => [n.kind, n.run?.run ?? n.case?.id ?? n.title, n.step, n.since].join(' ');

class Store {
  overview = $state.raw<Overview | null>(null);
  inbox = $state.raw<Need[]>([]);
  inboxKnown = $state(false);
  /** others are the other repositories of this user, with what waits there. */
  others = $state.raw<Repository[]>([]);
  runs = $state.raw<Run[]>([]);
  runsKnown = $state(false);
  cases = $state.raw<Case[]>([]);
  /** casesKnown: the first page is there; casesWhole: all of them. */
  casesKnown = $state(false);
  casesWhole = $state(false);
  /** gates are the checks as they are configured, none of them begun. */
  readonly gates = $derived(notBegun(this.overview?.gates ?? []));
  /** activity is what each run does just now. */
  readonly activity = new SvelteMap<string, Activity>();

  private readonly hay = new WeakMap<Case, string>();
  private wantsCases = false;
  private wantsRuns = false;
  private readonly newestRuns = new Newest<Run>((r) => r.run);
  private readonly newestActive = new Newest<Run>((r) => r.run);
  private readonly newestCases = new Newest<Case>((c) => c.id);
  private changed = new Set<string>();
  private touched = new Set<string>();

  readonly loadOverview = live.load(async () => {
    const asked = this.newestActive.ask();
    const now = await get('/api/v1/overview', { query: here() });
    const { list, more } = this.newestActive.merge(now.active, this.overview?.active ?? [], asked);
    this.overview = { ...now, active: inOrder([...list, ...more]) };
    clock.server(now.now);
  }, 250);

  readonly loadInbox = live.load(async () => {
    const before = new Set(this.inbox.map(named));
    this.inbox = (await get('/api/v1/inbox', {})).entries;
    const fresh = this.inboxKnown ? this.inbox.find((n) => !before.has(named(n))) : undefined;
    if (fresh) {
      notes.say(`${fresh.title} needs you. ${this.inbox.length} in all.`);
      alerts.need(fresh, this.inbox.length);
    }
    this.inboxKnown = true;
  }, 250);

  private readonly loadOthers = live.load(
    async () => void (this.others = (await get('/api/v1/repositories', {})).repositories),
    250,
  );

  private readonly loadRuns = live.load(async () => {
    const asked = this.newestRuns.ask();
    let cursor = '';
    const list: Run[] = [];
    do {
      const page = await get('/api/v1/runs', { query: { limit: 200, cursor } });
      list.push(...page.runs);
      cursor = page.next_cursor;
      if (!this.runsKnown) this.show(list, asked);
    } while (cursor !== '' && list.length < 2000);
    this.show(list, asked);
  }, 1000);

  private readonly loadTouched = live.load(async () => {
    const ids = [...this.touched].slice(0, 50);
    const asked = [this.newestRuns.ask(), this.newestActive.ask()] as const;
    this.putRuns(await each(this.touched, ids, (run) => get('/api/v1/runs/{run}', { path: { run } })), ...asked);
    if (this.touched.size > 0) this.loadTouched();
  }, 100);

  private readonly loadCases = live.load(async () => {
    const asked = this.newestCases.ask();
    let cursor = '';
    const list: Case[] = [];
    do {
      const page = await get('/api/v1/cases', {
        query: { limit: list.length === 0 && !this.casesKnown ? 200 : 1000, cursor },
      });
      list.push(...page.cases);
      cursor = page.next_cursor;
      if (!this.casesKnown) this.showCases(list.slice(), asked);
    } while (cursor !== '');
    this.showCases(list, asked);
    this.casesWhole = true;
    this.prepare(0);
  }, 2000);

  private readonly loadChanged = live.load(async () => {
    const ids = [...this.changed];
    if (ids.length > 20) {
      this.changed.clear();
      return this.loadCases();
    }
    const asked = this.newestCases.ask();
    this.putCases(await each(this.changed, ids, (id) => get('/api/v1/cases/{id}', { path: { id } })), asked);
  }, 60);

  /** counted are the attempts that runs have in their sums already: what is known of them live is not added. */
  private readonly counted = new Map<string, number>();

  /** spent is what a run has used until now, the attempt in progress included. */
  spent(r: Run): { cost_usd: number | null; tokens_in: number; tokens_out: number } {
    const now = this.activity.get(r.run);
    if (
      !now ||
      !works(r.status) ||
      now.iteration <= (this.counted.get(r.run) ?? 0) ||
      now.phase === 'review' ||
      now.phase === 'waiting'
    )
      return r;
    const cost = r.cost_usd === null && now.cost_usd === null ? null : (r.cost_usd ?? 0) + (now.cost_usd ?? 0);
    return { cost_usd: cost, tokens_in: r.tokens_in + now.tokens_in, tokens_out: r.tokens_out + now.tokens_out };
  }

  /** today is what the day has cost until now; null is not known. */
  get today(): number | null {
    const live = (this.overview?.active ?? [])
      .map((r) => (this.spent(r).cost_usd ?? 0) - (r.cost_usd ?? 0))
      .reduce((a, b) => a + b, 0);
    const cost = this.overview?.today.cost_usd ?? null;
    return cost === null && live === 0 ? null : (cost ?? 0) + live;
  }

  /** answered takes out of the inbox at once what a person has answered. */
  answered(run: string, step = ''): void {
    this.inbox = this.inbox.filter((n) => n.run?.run !== run || (step !== '' && n.step !== step));
  }

  /** Every load waits until nothing can be missed between it and the first event. */
  start(): void {
    live.listen({
      journal: (e) => this.journal(e),
      change: (e) => this.change(e),
      activity: (a) => this.activity.set(a.run, a),
      other: (what) => (what === 'repositories' ? this.loadOthers() : what === 'autopilot' && this.loadInbox()),
      reset: () => this.reload(),
    });
    this.loadOverview();
    this.loadInbox();
    this.loadOthers();
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

  /** touch loads a run that may have changed; touchCase a case. */
  touch(run: string): void {
    this.touched.add(run);
    this.loadTouched();
  }

  touchCase(id: string): void {
    if (!this.wantsCases) return;
    this.changed.add(id);
    this.loadChanged();
  }

  private show(all: Run[], asked: number): void {
    const { list, more } = this.newestRuns.merge(all, this.runs, asked);
    this.runs = [...more, ...list];
    this.runsKnown = true;
  }

  private showCases(all: Case[], asked: number): void {
    const { list, more } = this.newestCases.merge(all, this.cases, asked);
    this.putAll([...list, ...more]);
  }

  private journal(e: Happened): void {
    if (rests.has(e.kind) || e.kind === 'iteration.started') this.activity.delete(e.run);
    if (e.kind === 'iteration.ended') this.counted.set(e.run, this.activity.get(e.run)?.iteration ?? 0);
    if (e.kind === 'iteration.started') this.counted.delete(e.run);
    this.loadOverview();
    if (rests.has(e.kind)) this.loadInbox();
    if (e.run === 'autopilot' || e.run.startsWith('queue:')) return; // of no run
    this.touch(e.run);
  }

  private change(e: Changed): void {
    if (this.wantsCases) this.touchCase(e.id); // first: it is what is looked at
    this.loadOverview();
    this.loadInbox();
    if (!this.wantsCases) return;
    // What is done or gone makes others ready: their counters change unseen.
    if (
      e.to === 'done' ||
      e.from === 'done' ||
      e.action === 'remove' ||
      e.action === 'edit' ||
      e.action === 'block' ||
      e.action === 'unblock'
    )
      this.loadCases();
  }

  /** putRuns takes runs as they were when they were asked for; undefined is one that is gone. */
  private putRuns(fresh: Map<string, Run | undefined>, asked: number, askedActive: number): void {
    const by = new Map([...fresh].filter(([id]) => this.newestRuns.take(id, asked)));
    const list = this.runs.flatMap((r) => {
      if (!by.has(r.run)) return [r];
      const now = by.get(r.run);
      by.delete(r.run);
      return now ? [now] : [];
    });
    this.runs = [
      ...[...by.values()].filter((r) => r !== undefined).sort((a, b) => b.started_at.localeCompare(a.started_at)),
      ...list,
    ];
    const o = this.overview;
    if (!o) return;
    const taken = new Map([...fresh].filter(([id]) => this.newestActive.take(id, askedActive)));
    const working = [...taken.values()].filter(
      (r) => r !== undefined && (r.status === 'running' || r.status === 'waiting'),
    ) as Run[];
    this.overview = { ...o, active: inOrder([...working, ...o.active.filter((r) => !taken.has(r.run))]) };
  }

  /** putCases takes cases likewise. */
  private putCases(fresh: Map<string, Case | undefined>, asked: number): void {
    const by = new Map([...fresh].filter(([id]) => this.newestCases.take(id, asked)));
    const list: Case[] = [];
    for (const c of this.cases) {
      const now = by.get(c.id);
      if (!by.has(c.id)) list.push(c);
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
