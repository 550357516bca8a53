// What a sprint aims at, how far it is, and what the figures of earlier ones say.

/** Target is what a sprint aims at; the value of no_ready is empty. */
export interface Target {
  type: 'count' | 'duration' | 'until_time' | 'no_ready';
  value: string;
}

/** Figures are those of one sprint's line of statistics. */
export interface Figures {
  target: Target;
  aim: string;
  total: number;
  completed: number;
  failed: number;
  reviewing: number;
  /** seconds that each task took */
  times: number[];
}

const kinds = ['count', 'duration', 'until_time', 'no_ready'];

/** readStats reads a line of statistics; what does not exist, or odd, counts as nothing. */
export function readStats(stats: unknown): Figures {
  const s = (typeof stats === 'object' && stats !== null ? stats : {}) as Record<string, unknown>;
  const t = (typeof s.target === 'object' && s.target !== null ? s.target : {}) as Record<string, unknown>;
  const type = (kinds.includes(String(t.type)) ? t.type : 'no_ready') as Target['type'];
  const target = { type, value: typeof t.value === 'string' || typeof t.value === 'number' ? String(t.value) : '' };
  const number = (v: unknown) => (typeof v === 'number' && Number.isFinite(v) ? v : 0);
  const tasks = Array.isArray(s.taskStats) ? (s.taskStats as Record<string, unknown>[]) : [];
  const times = tasks.map((k) => (number(k?.completedAt) - number(k?.startedAt)) / 1000).filter((n) => n > 0);
  return {
    target,
    aim: aim(target),
    total: number(s.totalTasks),
    completed: number(s.completedTasks),
    failed: number(s.failedTasks),
    reviewing: number(s.reviewingTasks),
    times,
  };
}

/** aim is a target in words. */
export function aim(t: Target): string {
  switch (t.type) {
    case 'count':
      return `${t.value} tasks`;
    case 'duration':
      return `${t.value} h`;
    case 'until_time':
      return `until ${t.value}`;
    case 'no_ready':
      return 'until no task is ready';
  }
}

/** progress is how much of the target is reached, and in words. Times are in ms. */
export function progress(f: Figures, began: number, now: number): { share: number; text: string } {
  const tasks = `${f.completed}${f.target.type === 'count' ? `/${f.target.value}` : ''} tasks${f.failed > 0 ? ` | ${f.failed} failed` : ''}`;
  let share = f.total > 0 ? f.completed / f.total : 0;
  let left = '';
  if (f.target.type === 'count') share = f.completed / Math.max(1, Number(f.target.value));
  const end =
    f.target.type === 'duration'
      ? began + Number(f.target.value) * 3_600_000
      : f.target.type === 'until_time'
        ? timeOfDay(began, f.target.value)
        : 0;
  if (end > 0) {
    share = (now - began) / Math.max(1, end - began);
    const minutes = Math.max(0, Math.round((end - now) / 60_000));
    left = ` | ${Math.floor(minutes / 60)}h ${String(minutes % 60).padStart(2, '0')}m left`;
  }
  return { share: Math.min(1, Math.max(0, share)), text: `${tasks} | ${aim(f.target)}${left}` };
}

/** timeOfDay is the next HH:MM after a time; 0 when it is none. */
export function timeOfDay(after: number, text: string): number {
  const m = /^(\d{1,2}):(\d{2})$/.exec(text);
  if (!m) return 0;
  const at = new Date(after);
  at.setHours(Number(m[1]), Number(m[2]), 0, 0);
  if (at.getTime() <= after) at.setDate(at.getDate() + 1);
  return at.getTime();
}

/** expected is what a sprint would come to: tasks that are ready, seconds a task, agents at once. */
export function expected(
  t: Target,
  ready: number,
  average: number,
  slots: number,
  now = Date.now(),
): { tasks: number; seconds: number } {
  const time = (tasks: number) => (Math.ceil(tasks / slots) || 0) * average;
  if (t.type === 'count') {
    const tasks = Math.min(ready, Number(t.value) || 0);
    return { tasks, seconds: time(tasks) };
  }
  if (t.type === 'no_ready') return { tasks: ready, seconds: time(ready) };
  const room = t.type === 'duration' ? Number(t.value) * 3600 : Math.max(0, (timeOfDay(now, t.value) - now) / 1000);
  const tasks = Math.min(ready, Math.floor((room / Math.max(1, average)) * slots));
  return { tasks, seconds: Math.min(room, time(Math.max(tasks, Math.min(ready, 1)))) };
}

/** limitsOf are the limits of a task that a sprint takes from the configuration, in words. A 0 is none. */
export function limitsOf(settings: { path: string; value: string; set: boolean }[]): string[] {
  const of = (path: string) => settings.find((s) => s.path === path);
  const says: [string, string][] = [
    ['autopilot.task_timeout', 'ends after'],
    ['loop.failure_threshold', 'failed iterations in a row:'],
    ['loop.stuck_threshold', 'iterations without progress:'],
    ['loop.thrashing_threshold', 'failed iterations with the same file:'],
  ];
  return says.flatMap(([path, words]) => {
    const s = of(path);
    // A task has its own default where the key is not set.
    const value = path === 'loop.failure_threshold' && !s?.set ? '5' : s?.value;
    return !value || /^0s?$/.test(value) ? [] : [`${words} ${value}`];
  });
}
