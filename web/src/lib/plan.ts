// What a person can do with the tasks that an agent proposed for a goal. Each is one
// request, which names the list that was seen: one that changed meanwhile stays as it is.

import { get, post, remove } from './api';
import { asking, type Answers, type Field } from './ask.svelte';
import { plural } from './format';
import { attempt, notes } from './notes.svelte';
import { store } from './store.svelte';

export const readPlan = () => get('/api/v1/proposal', {});
export type Plan = Awaited<ReturnType<typeof readPlan>>;
export type Proposed = Plan['tasks'][number];

/** planRun is the name of the run that proposes. */
export const planRun = 'pawl-plan';

/** propose starts an agent that looks for tasks; true when it has begun. */
export async function propose(): Promise<boolean> {
  const done = await asking.ask(
    {
      title: 'Plan a goal',
      text: 'An agent reads the repository and proposes tasks. It changes nothing, and nothing is added until you say so.',
      fields: [
        { name: 'goal', label: 'What is the goal?', lines: true, needed: true },
        { name: 'max_cost', label: 'US dollars at most', hint: 'for example 2; empty: as configured' },
      ],
      yes: 'Start',
    },
    ({ goal = '', max_cost = '' }) =>
      post('/api/v1/runs', { body: { goal, ...(max_cost.trim() ? { max_cost: max_cost.trim() } : {}) } }),
  );
  if (!done) return false;
  notes.done('An agent looks for tasks.');
  if (done.run) store.touch(done.run.run);
  return true;
}

const linesOf = (text = '') =>
  text
    .split('\n')
    .map((l) => l.trim())
    .filter((l) => l !== '');

/** fieldsOf are what a proposed task says; needs are refs of the others. */
const fieldsOf = (t: Proposed, others: Proposed[]): Field[] => [
  { name: 'title', label: 'What should be done?', value: t.title, needed: true },
  { name: 'description', label: 'Description', value: t.description ?? '', lines: true },
  {
    name: 'acceptance',
    label: 'Done when',
    value: t.acceptance.join('\n'),
    lines: true,
    needed: true,
    hint: 'one criterion a line, seven at most',
  },
  { name: 'needs', label: 'Needs first', value: (t.needs ?? []).join(' '), picks: others.map((o) => [o.ref, o.title]) },
  { name: 'priority', label: 'Priority', value: String(t.priority ?? 0), hint: 'higher goes first' },
];

const filled = (ref: string, a: Answers, verify?: Proposed['verify']): Proposed => ({
  ref,
  ...(verify ? { verify } : {}),
  title: a.title ?? '',
  description: a.description ?? '',
  acceptance: linesOf(a.acceptance),
  needs: (a.needs ?? '').split(/\s+/).filter((n) => n !== ''),
  priority: Number.parseInt(a.priority ?? '', 10) || 0,
});

/** save replaces the tasks of the list that was seen. */
const save = (plan: Plan, tasks: Proposed[]) =>
  post('/api/v1/proposal', { query: { version: plan.version }, body: { tasks } });

/** editTask changes a proposed task; null leaves the list as it is. */
export function editTask(plan: Plan, t: Proposed): Promise<Plan | null> {
  const others = plan.tasks.filter((o) => o.ref !== t.ref);
  return asking.ask({ title: `Edit ${t.ref}`, fields: fieldsOf(t, others), yes: 'Save' }, (answers) =>
    save(
      plan,
      plan.tasks.map((o) => (o.ref === t.ref ? filled(t.ref, answers, t.verify) : o)),
    ),
  );
}

/** oneMore adds a task to the list. */
export function oneMore(plan: Plan): Promise<Plan | null> {
  let n = plan.tasks.length + 1;
  while (plan.tasks.some((t) => t.ref === `more-${n}`)) n++;
  const empty: Proposed = { ref: `more-${n}`, title: '', acceptance: [] };
  return asking.ask(
    { title: 'One more task', fields: fieldsOf(empty, plan.tasks), yes: 'Add it to the list' },
    (answers) => save(plan, [...plan.tasks, filled(empty.ref, answers)]),
  );
}

/** without takes a task out of the list; what needed it needs it no more. */
export async function without(plan: Plan, t: Proposed): Promise<Plan | null> {
  if (plan.tasks.length === 1) return (await drop(plan)) ? readPlan() : null;
  const left = plan.tasks
    .filter((o) => o.ref !== t.ref)
    .map((o) => ({ ...o, needs: (o.needs ?? []).filter((n) => n !== t.ref) }));
  return (await attempt(() => save(plan, left))) ?? null;
}

/** addAll puts the tasks on the board. */
export async function addAll(plan: Plan): Promise<boolean> {
  const done = await attempt(() => post('/api/v1/proposal/add', { query: { version: plan.version }, body: undefined }));
  if (!done) return false;
  notes.done(`${plural(plan.tasks.length, 'task')} on the board.`);
  store.reload();
  return true;
}

/** drop throws the list away. */
export async function drop(plan: Plan): Promise<boolean> {
  const sure = await asking.sure(
    'Discard the proposed tasks?',
    'The list is removed. The output of the agent stays in the log of its run.',
    'Discard them',
  );
  return sure && (await attempt(() => remove('/api/v1/proposal', { query: { version: plan.version } }))) !== undefined;
}
