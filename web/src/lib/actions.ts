// What a person can do with runs and cases. Each is one request; what would be
// lost is asked about first.

import {
  get,
  patch,
  post,
  Problem,
  remove,
  type Case,
  type CaseDetail,
  type Done,
  type Repository,
  type Run,
  type RunDetail,
} from './api';
import { asking, type Answers, type Asking, type Field } from './ask.svelte';
import { checkHint, checkOfLine, checksAsLines } from './checks';
import { inBrowser, plural, short, titled } from './format';
import { attempt, notes } from './notes.svelte';
import { moved } from './order';
import { works } from './status';
import { store } from './store.svelte';

/** show says what an action did, and shows the run as it is now. */
function show(done: Done): true {
  notes.done(inBrowser(done.lines).join(' ') || 'Done.');
  if (done.run) store.touch(done.run.run);
  store.loadInbox();
  return true;
}

/** tell does it, and shows what came of it. */
async function tell(work: () => Promise<Done>): Promise<boolean> {
  const done = await attempt(work);
  return done !== undefined && show(done);
}

/** fill asks what an action needs to know, does it, and shows the result. */
const fill = async (question: Asking, work: (answers: Answers) => Promise<Done>): Promise<boolean> =>
  (await asking.ask(question, async (answers) => show(await work(answers)))) ?? false;

/** filled are the fields that were not left empty. */
const filled = (answers: Answers) => Object.fromEntries(Object.entries(answers).filter(([, v]) => v.trim() !== ''));
const linesOf = (text = '') =>
  text
    .split('\n')
    .map((l) => l.trim())
    .filter((l) => l !== '');
const wordsOf = (text = '') => text.split(/[\s,]+/).filter((t) => t !== '');

const at = (r: { run: string }) => ({ path: { run: r.run } });

/** can is true when the run allows the action now. */
export const can = (r: Run, action: string) => r.actions.includes(action);

export const pause = (r: Run) => tell(() => post('/api/v1/runs/{run}/pause', { ...at(r), body: undefined }));

/** pauseOrResume is what Space does. */
export function pauseOrResume(r: Run): void {
  if (can(r, 'pause')) void pause(r);
  else if (can(r, 'resume')) void resume(r);
}

export async function stop(r: Run): Promise<boolean> {
  const sure = await asking.sure(
    `Stop ${short(titled(r), 60)}?`,
    `Its agent is stopped now. What it said in iteration ${r.iteration} since its last answer is lost; files that it changed are kept, and the run can be resumed. To lose nothing, pause it instead.`,
    'Stop the run',
  );
  return sure && tell(() => post('/api/v1/runs/{run}/stop', { ...at(r), body: undefined }));
}

export const resume = (r: Run) => tell(() => post('/api/v1/runs/{run}/resume', { ...at(r), body: {} }));

/** raise gives a run higher limits: it goes on with them, now or when it rests. */
export const raise = (r: Run | RunDetail) =>
  fill(
    {
      title: can(r, 'resume') ? 'Raise limits and resume' : `Raise the limits of ${short(titled(r), 60)}`,
      text: can(r, 'resume')
        ? 'Empty fields do not change.'
        : 'The run continues, and the new limits apply from its next iteration. Empty fields do not change.',
      fields: [
        {
          name: 'max_iterations',
          label: 'Iterations at most',
          value: r.max_iterations > 0 ? String(r.max_iterations + 5) : '',
          hint: `${r.iteration} are used${r.max_iterations > 0 ? ` of ${r.max_iterations}` : ', without a maximum'}`,
        },
        ...(r.kind === 'task'
          ? []
          : [{ name: 'max_cost', label: 'US dollars at most', hint: 'of the whole run, for example 5 or 2.50' }]),
        {
          name: 'timeout',
          label: r.kind === 'task' ? 'Time at most, without waits' : 'Wall clock at most',
          hint: 'with its unit, for example 90m or 4h',
        },
        ...(r.kind === 'workflow' && can(r, 'resume')
          ? [{ name: 'iterate', label: 'When a step fails', value: '', choices: untilDone('As before') }]
          : []),
      ],
      yes: can(r, 'resume') ? 'Raise and resume' : 'Raise',
    },
    ({ iterate, ...limits }) =>
      post('/api/v1/runs/{run}/resume', {
        ...at(r),
        body: { ...filled(limits), ...(iterate ? { iterate: true } : {}) },
      }),
  );

/** What becomes of a workflow in which a step fails. */
const untilDone = (otherwise: string): [string, string][] => [
  ['', otherwise],
  ['yes', 'Repeat what is not done, until all steps are'],
];

const leave = (r: Run, text: string) => post('/api/v1/runs/{run}/message', { ...at(r), body: { text } });

/** send is a message to the agent that was written where the run is shown. */
export const send = (r: Run, text: string) => tell(() => leave(r, text));

export const message = (r: Run) =>
  fill(
    {
      title: `Message to the agent of ${short(titled(r), 60)}`,
      text: 'A working agent cannot be interrupted. The message goes into the prompt of its next iteration; in a workflow, into the prompt of the next agent.',
      fields: [{ name: 'text', label: 'Message', lines: true, needed: true }],
      yes: 'Send',
    },
    (answers) => leave(r, answers.text ?? ''),
  );

/** redirect gives the slot of a task's agent to another task. */
export async function redirect(r: Run): Promise<boolean> {
  const ready = await attempt(() => get('/api/v1/cases', { query: { ready: true, limit: 200 } }));
  if (!ready) return false;
  if (ready.cases.length === 0) {
    await asking.ask(
      { title: 'No other task is ready', text: 'Add one to the board, or unblock one that waits.', yes: 'All right' },
      async () => true,
    );
    return false;
  }
  return fill(
    {
      title: `Give the slot of ${short(titled(r), 60)} to another task`,
      loses: `Its agent is stopped now. What it said in iteration ${r.iteration} since its last answer is lost; files that it changed are kept, and ${r.name} is pending again.`,
      fields: [
        {
          name: 'to',
          label: 'Work on this instead',
          value: ready.cases[0]!.id,
          choices: ready.cases.map((c) => [c.id, `${c.id}: ${short(c.title, 80)}`]),
        },
      ],
      yes: 'Give it away',
    },
    ({ to = '' }) => post('/api/v1/runs/{run}/redirect', { ...at(r), body: { to } }),
  );
}

/** rollback names the files that it would put back now, and then does it. */
export async function rollback(r: Run, to: number): Promise<boolean> {
  const seen = await attempt(() => get('/api/v1/runs/{run}/rollback', { ...at(r), query: { to } }));
  if (!seen) return false;
  const where = to === 0 ? 'before the run' : `after iteration ${to}`;
  const files = [...seen.restored.map((f) => `back: ${f}`), ...seen.removed.map((f) => `gone: ${f}`)];
  const said =
    seen.files === 0
      ? 'No file differs from then.'
      : `${plural(seen.files, 'file changes', 'files change')}. Files that somebody changed since are kept, and listed here.`;
  const agreed = await asking.ask(
    {
      title: `Roll back to ${where}?`,
      loses: `${said} A snapshot of the current files is taken first, so that the rollback can be undone.`,
      list: [
        ...files.slice(0, 200),
        ...(seen.files > 200 ? [`and ${seen.files - 200} more`] : []),
        ...inBrowser(seen.notes),
      ],
      yes: 'Roll back',
    },
    async () => true,
  );
  return agreed === true && tell(() => post('/api/v1/runs/{run}/rollback', { ...at(r), body: { to } }));
}

export const undoRollback = (r: Run) =>
  tell(() => post('/api/v1/runs/{run}/rollback', { ...at(r), body: { undo: true } }));

/** apply names the files that it would change, and then does it. */
export async function apply(r: Run): Promise<boolean> {
  const seen = await attempt(() => get('/api/v1/runs/{run}/apply', at(r)));
  if (!seen) return false;
  const itself = seen.confirm ?? [];
  const files = [
    ...itself.map((f) => `runs by itself: ${f}`),
    ...(seen.conflicts ?? []).map((c) => `${c.path}: ${c.why}`),
    ...(seen.written ?? []).map((f) => `written: ${f}`),
    ...(seen.removed ?? []).map((f) => `removed: ${f}`),
  ];
  const agreed = await asking.ask(
    {
      title: `Apply the work of ${short(titled(r), 60)}?`,
      text:
        seen.changed === 0
          ? 'All its work is in your files.'
          : `It changes ${plural(seen.changed, 'file')} of yours, verified or not. No other file changes.`,
      ...(itself.length === 0
        ? {}
        : { loses: 'Your own programs run some of these by themselves. Check them before you say yes.' }),
      list: [...files.slice(0, 200), ...(files.length > 200 ? [`and ${files.length - 200} more`] : [])],
      yes: 'Apply it',
    },
    async () => true,
  );
  return (
    agreed === true &&
    tell(() => post('/api/v1/runs/{run}/apply', { ...at(r), query: { confirmed: itself.length > 0 }, body: undefined }))
  );
}

export async function discard(r: Run): Promise<boolean> {
  const sure = await asking.sure(
    `Discard ${short(titled(r), 60)}?`,
    'It ends, and its work that is not in your files is discarded. Your files do not change; its snapshots and history are kept.',
    'Discard it',
  );
  return sure && tell(() => post('/api/v1/runs/{run}/discard', { ...at(r), body: undefined }));
}

/** settle chooses what becomes of a file that a person and the agent both changed. */
export const settle = (r: Run, path: string, choice: 'mine' | 'agent' | 'both' | 'edit', text: string) =>
  tell(() => post('/api/v1/runs/{run}/conflicts', { ...at(r), body: { path, choice, text } }));

/** landAgain tries again what did not land. */
export const landAgain = (id: string) =>
  tell(() => post('/api/v1/queue/entries/{id}/actions', { path: { id }, body: { action: 'retry', why: '' } }));

export async function answer(run: string, choice: number, text: string, step = ''): Promise<boolean> {
  const done = await tell(() => post('/api/v1/runs/{run}/answer', { path: { run }, body: { choice, text, step } }));
  if (done) store.answered(run, step);
  return done;
}

/** sendBack asks what must change in the work of a run that waits for its review. */
export const sendBack = (r: Run, comments = '') =>
  fill(
    {
      title: `What must change in ${short(titled(r), 60)}?`,
      text: 'The next iteration gets this as feedback.',
      quick: quickReasons,
      fields: [{ name: 'text', label: 'What must change?', value: comments, lines: true, needed: true }],
      yes: 'Send it back',
    },
    ({ text = '' }) => post('/api/v1/runs/{run}/review', { path: { run: r.run }, body: { decision: 'reject', text } }),
  );

export async function decide(run: string, decision: 'approve' | 'reject', text: string): Promise<boolean> {
  const done = await tell(() => post('/api/v1/runs/{run}/review', { path: { run }, body: { decision, text } }));
  if (done) store.answered(run);
  return done;
}

/** start asks which procedure or workflow, and starts it. */
export async function start(): Promise<string> {
  const known = await attempt(() =>
    Promise.all([
      get('/api/v1/procedures', {}),
      get('/api/v1/workflows', {}),
      store.overview ?? get('/api/v1/overview', {}),
    ]),
  );
  if (!known) return '';
  const [{ procedures }, { workflows }, { agents }] = known;
  const choices: [string, string][] = [
    ...procedures.map((p): [string, string] => [
      `p ${p.name}`,
      short(p.summary ? `${p.name}: ${p.summary}` : p.name, 90),
    ]),
    ...workflows.map((w): [string, string] => [
      `w ${w.file}`,
      short(`${w.name}, workflow${w.description ? `: ${w.description}` : ''}`, 90),
    ]),
  ];
  if (choices.length === 0) {
    await asking.ask(
      {
        title: 'There is nothing to start yet',
        text: 'A procedure is a named prompt under procedures: in pawl.yaml; a workflow is a file with steps. Add one, then start it here.',
        yes: 'All right',
      },
      async () => true,
    );
    return '';
  }
  const inputs = [...new Set(workflows.flatMap((w) => w.inputs))];
  const of = (answers: Answers) => workflows.find((w) => `w ${w.file}` === answers.what);
  /** earlier is the last run of what is to be started, where that could go on. */
  const earlier = (answers: Answers) => {
    const last = store.runs.find((r) => r.kind === 'procedure' && `p ${r.name}` === answers.what);
    return last && !works(last.status) && can(last, 'resume') ? last : undefined;
  };
  const anew = (answers: Answers) => !earlier(answers) || answers.anew === 'yes';
  const done = await asking.ask(
    {
      title: 'Start a procedure or a workflow',
      fields: [
        { name: 'what', label: 'Procedure or workflow', value: choices[0]![0], choices },
        {
          name: 'anew',
          label: 'Its last run has not ended',
          value: '',
          choices: [
            ['', 'Continue that one'],
            ['yes', 'Leave it, and start a new one'],
          ],
          shown: (answers) => earlier(answers) !== undefined,
        },
        ...inputs.map((name): Field => ({
          name: `in ${name}`,
          label: `Input ${name}`,
          needed: true,
          shown: (answers) => of(answers)?.inputs.includes(name) ?? false,
        })),
        {
          name: 'context',
          label: 'Also tell the agent (optional)',
          lines: true,
          shown: (answers) => !of(answers) && anew(answers),
        },
        {
          name: 'iterate',
          label: 'When a step fails',
          value: '',
          choices: untilDone('Stop there'),
          shown: (answers) => of(answers) !== undefined,
        },
        { name: 'max_iterations', label: 'Iterations at most (optional)' },
        { name: 'max_cost', label: 'Dollars at most (optional)' },
        { name: 'timeout', label: 'Time at most (optional)', hint: 'with its unit: 1h30m' },
        ...(agents.length < 2
          ? []
          : [
              {
                name: 'agent',
                label: 'Agent',
                value: '',
                choices: [['', 'As configured'], ...agents.map((a) => [a, a])] as [string, string][],
                shown: anew,
              },
            ]),
        {
          name: 'safety',
          label: 'Safety',
          value: '',
          shown: anew,
          choices: [
            ['', 'As configured'],
            ['permissive', 'Permissive: the agent can access everything'],
            ['normal', 'Normal: it can write only in the project'],
            ['paranoid', 'Paranoid: also no network except its model'],
          ],
        },
      ],
      yes: 'Start',
    },
    (answers) => {
      const flow = of(answers);
      const last = earlier(answers);
      if (last && !answers.anew)
        return post('/api/v1/runs/{run}/resume', {
          ...at(last),
          body: filled({
            max_iterations: answers.max_iterations ?? '',
            max_cost: answers.max_cost ?? '',
            timeout: answers.timeout ?? '',
          }),
        });
      const context = flow
        ? flow.inputs.map((name) => `${name}=${answers[`in ${name}`] ?? ''}`)
        : answers.context?.trim()
          ? [answers.context]
          : [];
      const body = {
        ...(flow
          ? { workflow: flow.file, fresh: true, ...(answers.iterate ? { iterate: true } : {}) }
          : { procedure: answers.what?.slice(2) ?? '', ...(last ? { fresh: true } : {}) }),
        ...(context.length > 0 ? { context } : {}),
        ...filled({
          max_iterations: answers.max_iterations ?? '',
          max_cost: answers.max_cost ?? '',
          timeout: answers.timeout ?? '',
          agent: answers.agent ?? '',
        }),
        ...(answers.safety ? { safety: answers.safety as 'normal' } : {}),
      };
      return post('/api/v1/runs', { body });
    },
  );
  if (!done) return '';
  show(done);
  return done.run?.run ?? '';
}

/** Move is an action on a case. */
export type Move =
  'retry' | 'unblock' | 'block' | 'defer' | 'undefer' | 'start' | 'approve' | 'redo' | 'reject' | 'revert';

const words: Record<Move, { title: string; yes: string; why: 'none' | 'welcome' | 'needed'; did: string }> = {
  retry: { title: 'Retry', yes: 'Retry', why: 'none', did: 'is pending again' },
  unblock: { title: 'Unblock', yes: 'Unblock', why: 'none', did: 'is pending again' },
  block: { title: 'Block', yes: 'Block', why: 'needed', did: 'is blocked' },
  defer: { title: 'Defer', yes: 'Defer', why: 'none', did: 'is deferred' },
  undefer: { title: 'Undefer', yes: 'Undefer', why: 'none', did: 'is pending again' },
  start: { title: 'Start', yes: 'Start', why: 'none', did: 'gets the next free slot' },
  approve: { title: 'Approve', yes: 'Approve', why: 'none', did: 'is approved, and waits to land' },
  redo: { title: 'Redo', yes: 'Redo', why: 'needed', did: 'is pending again' },
  reject: { title: 'Reject', yes: 'Reject', why: 'needed', did: 'is blocked' },
  revert: { title: 'Revert', yes: 'Revert', why: 'needed', did: 'is queued to be reverted on its target' },
};

/** clean removes the workspace of a task. */
export async function clean(c: Case): Promise<boolean> {
  const sure = await asking.sure(
    `Remove the workspace of ${c.id}?`,
    'Its folder is removed. Commits and uncommitted files are saved under a ref of the repository; ignored files, such as caches and build results, are lost.',
    'Remove the workspace',
  );
  return sure && tell(() => post('/api/v1/cases/{id}/clean', { path: { id: c.id }, body: undefined }));
}

/** takeBack rolls a task's workspace back to where it began. */
export async function takeBack(c: Case): Promise<boolean> {
  const { files } = await get('/api/v1/cases/{id}/diff', { path: { id: c.id } }).catch(() => ({ files: [] }));
  const agreed = await asking.ask(
    {
      title: `Roll ${c.id} back?`,
      loses: 'The work of its agents is removed from its workspace. A snapshot is kept, so that this can be undone.',
      list: files.slice(0, 200).map((f) => `${f.status}: ${f.path}`),
      yes: 'Roll back',
    },
    async () => true,
  );
  return agreed === true && tell(() => post('/api/v1/cases/{id}/rollback', { path: { id: c.id }, body: {} }));
}

/** extend gives a task more iterations or time. */
export async function extend(c: Case): Promise<boolean> {
  const used = store.runs.find((r) => r.name === c.id);
  return fill(
    {
      title: `Raise the limits of ${c.id}`,
      text: c.status === 'timeout' ? 'Its run continues where it stopped.' : '',
      fields: [
        {
          name: 'max_iterations',
          label: 'Iterations in all',
          value: used && used.max_iterations > 0 ? String(used.max_iterations + 5) : '',
          hint: used ? `${used.iteration} are used` : '',
        },
        { name: 'timeout', label: 'Time in all (optional)', hint: 'without waits; with its unit: 1h30m' },
      ],
      yes: 'Raise',
    },
    (answers) => post('/api/v1/cases/{id}/extend', { path: { id: c.id }, body: filled(answers) }),
  );
}

/** quickReasons are what a review most often finds. */
export const quickReasons = [
  'Tests incomplete',
  'Code style issues',
  'Missing error handling',
  'Performance concerns',
  'Security issues',
];

export async function move(c: Case, how: Move, comments = ''): Promise<boolean> {
  const word = words[how];
  const act = (why: string) => post('/api/v1/cases/{id}/actions', { path: { id: c.id }, body: { action: how, why } });
  const now =
    word.why === 'none'
      ? await attempt(() => act(comments))
      : await asking.ask(
          {
            title: `${word.title} ${c.id}`,
            text: short(c.title, 200),
            ...(how === 'redo' ? { quick: quickReasons } : {}),
            fields: [
              {
                name: 'why',
                label: how === 'block' ? 'What must happen first?' : how === 'revert' ? 'Why?' : 'What must change?',
                value: comments,
                lines: true,
                needed: true,
              },
            ],
            yes: word.yes,
          },
          (answers) => act(answers.why ?? ''),
        );
  if (!now) return false;
  store.touchCase(now.id);
  store.loadInbox();
  notes.done(`${c.id} ${word.did}: ${short(c.title, 60)}`);
  return true;
}

/** fieldsOf are what a case says, to be filled in; of a new one without a case. */
async function fieldsOf(c?: CaseDetail): Promise<Field[]> {
  const operations = store.cases.filter((o) => o.type === 'operation' && o.id !== c?.id);
  const others = store.cases.filter((o) => o.id !== c?.id && (o.status !== 'done' || c?.needs.includes(o.id)));
  const { agents } = store.overview ?? (await get('/api/v1/overview', {})); // a key may be quicker than the page
  const [agent, tags] = agentOf(c?.tags ?? []);
  const named = [...new Set([...agents.slice(1), agent])].filter((a) => a !== '');
  return [
    { name: 'title', label: c ? 'Title' : 'What should be done?', value: c?.title ?? '', needed: true },
    { name: 'description', label: 'Description', value: c?.description ?? '', lines: true },
    {
      name: 'acceptance',
      label: 'Done when',
      value: (c?.acceptance ?? []).join('\n'),
      lines: true,
      hint: 'one criterion a line',
    },
    ...(c?.type === 'operation'
      ? []
      : [
          { name: 'verify', label: 'Checked by', value: checksAsLines(c?.verify), lines: true, hint: checkHint },
          {
            name: 'sealed',
            label: 'Sealed checks',
            value: checksAsLines(c?.sealed),
            lines: true,
            hint: 'the same, which its agent does not see',
          },
        ]),
    ...(operations.length === 0 || c?.type === 'operation'
      ? []
      : [
          {
            name: 'parent',
            label: 'In operation',
            value: c?.parent ?? '',
            choices: [['', 'None'], ...operations.map((o) => [o.id, `${o.id}: ${short(o.title, 80)}`])] as [
              string,
              string,
            ][],
          },
        ]),
    {
      name: 'needs',
      label: 'Needs first',
      value: (c?.needs ?? []).join(' '),
      picks: others.map((o) => [o.id, short(o.title, 100)]),
    },
    { name: 'tags', label: 'Labels', value: tags.join(' '), hint: 'separated by spaces' },
    ...(named.length === 0
      ? []
      : [
          {
            name: 'agent',
            label: 'Agent',
            value: agent,
            choices: [['', `The usual one: ${agents[0]}`], ...named.map((a) => [a, a])] as [string, string][],
          },
        ]),
    { name: 'priority', label: 'Priority', value: String(c?.priority ?? 0), hint: 'higher goes first' },
  ];
}

/** agentOf takes the agent of a task out of its tags. */
function agentOf(tags: string[]): [string, string[]] {
  const agents = tags.filter((t) => t.startsWith('agent:'));
  return [agents[0]?.slice(6) ?? '', tags.filter((t) => !agents.includes(t))];
}

/** textOf is what was filled in, as the server takes it. */
function textOf(a: Answers) {
  return {
    title: a.title ?? '',
    description: a.description ?? '',
    acceptance: linesOf(a.acceptance),
    ...(a.type === 'operation' || a.verify === undefined
      ? {}
      : { verify: linesOf(a.verify).map(checkOfLine), sealed: linesOf(a.sealed).map(checkOfLine) }),
    tags: [...wordsOf(a.tags), ...(a.agent ? [`agent:${a.agent}`] : [])],
    needs: wordsOf(a.needs),
    priority: Number.parseInt(a.priority ?? '', 10) || 0,
    ...(a.parent === undefined ? {} : { parent: a.parent }),
  };
}

/** retryWith tries a task again, with words for its next agent. */
export async function retryWith(c: Case): Promise<boolean> {
  const now = await asking.ask(
    {
      title: `Retry ${c.id} with a hint`,
      text: short(c.title, 200),
      fields: [{ name: 'why', label: 'What should the agent know this time?', lines: true, needed: true }],
      yes: 'Retry',
    },
    (answers) =>
      post('/api/v1/cases/{id}/actions', { path: { id: c.id }, body: { action: 'retry', why: answers.why ?? '' } }),
  );
  if (!now) return false;
  store.touchCase(now.id);
  store.loadInbox();
  notes.done(`${c.id} is pending again, with your hint.`);
  return true;
}

export async function edit(id: string): Promise<boolean> {
  const c = await attempt(() => get('/api/v1/cases/{id}', { path: { id } }));
  const fields = c && (await attempt(() => fieldsOf(c)));
  if (!fields) return false;
  const now = await asking.ask({ title: `Edit ${c.id}`, fields, yes: 'Save' }, (answers) =>
    patch('/api/v1/cases/{id}', { path: { id }, body: textOf(answers) }),
  );
  if (!now) return false;
  store.touchCase(now.id);
  notes.done(`${c.id} is changed.`);
  return true;
}

export async function addCase(): Promise<string> {
  const kind: Field = {
    name: 'type',
    label: 'Kind',
    value: 'task',
    choices: [
      ['task', 'A task, worked on by an agent'],
      ['operation', 'An operation, which groups tasks'],
    ],
  };
  const fields = await attempt(() => fieldsOf());
  if (!fields) return '';
  fields.splice(3, 0, kind);
  const now = await asking.ask({ title: 'Add a task', fields, yes: 'Add' }, (answers) =>
    post('/api/v1/cases', { body: { ...textOf(answers), type: answers.type === 'operation' ? 'operation' : 'task' } }),
  );
  if (!now) return '';
  store.touchCase(now.id);
  notes.done(`${now.id} is on the board.`);
  return now.id;
}

/** reorder gives a task another place among those that wait like it. */
export async function reorder(list: Case[], from: number, to: number): Promise<void> {
  const changes = moved(list, from, to);
  if (changes.length > 50)
    return notes.failed(
      new Problem(
        'MANY',
        `${changes.length} tasks would need another priority.`,
        'medium',
        [],
        ['Move it further up, or edit its priority'],
      ),
    );
  for (const [id, priority] of changes) {
    const now = await attempt(() => patch('/api/v1/cases/{id}', { path: { id }, body: { priority } }));
    if (!now) return;
    store.touchCase(id);
  }
  const [next] = list.filter((_, i) => i !== from).slice(to);
  notes.done(`${changes[0]![0]} goes ${next ? `before ${next.id}` : 'last'}, with the priority ${changes[0]![1]}.`);
}

export async function importCases(): Promise<void> {
  const done = await asking.ask(
    {
      title: 'Import a list of tasks',
      text: 'Paste Markdown with checkboxes, JSON lines, or an export of beads. All of it is added, or nothing.',
      fields: [{ name: 'text', label: 'List', lines: true, needed: true }],
      yes: 'Import',
    },
    ({ text = '' }) => post('/api/v1/cases/import', { body: { text } }),
  );
  if (!done) return;
  notes.done(`${done.ids.length} tasks are on the board.`);
  store.reload();
}

export async function removeCase(c: Case): Promise<boolean> {
  const sure = await asking.sure(
    `Remove ${c.id} from the board?`,
    `"${short(c.title, 120)}" is removed from the board. Its history is kept, but this cannot be undone.`,
    'Remove it',
  );
  if (!sure) return false;
  const gone = await attempt(() => remove('/api/v1/cases/{id}', { path: { id: c.id } }));
  if (!gone) return false;
  store.touchCase(c.id);
  notes.done(`${c.id} is removed.`);
  return true;
}

/** openRepository lets this browser in at another repository, and goes to a page of it. */
export async function openRepository(r: Repository, page = '/'): Promise<void> {
  if (!r.served) notes.done(`${short(r.name, 60)} is being opened.`);
  const entry = await attempt(() => post('/api/v1/repositories/{id}/open', { path: { id: r.id }, body: undefined }));
  if (entry) location.assign(`${entry.url}${page}#key=${entry.key}`);
}

/** preview opens what a task serves on its ports, in a tab of its own; the person chooses where several answer. */
export async function preview(c: CaseDetail): Promise<void> {
  const look = (port?: number) =>
    post('/api/v1/cases/{id}/preview', { path: { id: c.id }, body: port ? { port } : {} });
  const show = (url: string) => void window.open(url, '_blank', 'noopener');
  const found = await attempt(() => look());
  if (!found) return;
  if (found.url) return show(found.url);
  const [port] = found.listening;
  if (!port) {
    const first = c.workspace?.first_port ?? 0;
    return notes.failed(
      new Problem(
        'NOTHING_LISTENS',
        `Nothing answers on the ports ${first} to ${first + (c.workspace?.ports ?? 1) - 1} of ${c.id}.`,
        'medium',
        [],
        ['Start its server on one of them, for example in the terminal: on $PAWL_PORT_BASE'],
      ),
    );
  }
  await asking.ask(
    {
      title: `Preview of ${c.id}`,
      fields: [
        {
          name: 'port',
          label: 'Port',
          value: String(port),
          choices: found.listening.map((p) => [String(p), String(p)]),
        },
      ],
      yes: 'Open',
    },
    async (answers) => show((await look(Number(answers.port))).url),
  );
}
