// What a person can do with runs and cases. Each is one request; what would be
// lost is asked about first.

import { get, patch, post, remove, type Case, type Done, type Run, type RunDetail } from './api';
import { asking } from './ask.svelte';
import { short } from './format';
import { attempt, notes } from './notes.svelte';
import { store } from './store.svelte';

/** tell shows what came of a deed, and the run as it is then. */
async function tell(work: () => Promise<Done>): Promise<boolean> {
  const done = await attempt(work);
  if (!done) return false;
  notes.done(done.message || 'Done.');
  if (done.run) store.putRuns([done.run]);
  store.loadInbox();
  return true;
}

const at = (r: { run: string }) => ({ path: { run: r.run } });

/** can is true when the run as it is allows the deed. */
export const can = (r: Run, deed: string) => r.actions.includes(deed);

export const pause = (r: Run) => tell(() => post('/api/v1/runs/{run}/pause', { ...at(r), body: undefined }));

/** pauseOrResume is what Space does. */
export function pauseOrResume(r: Run): void {
  if (can(r, 'pause')) void pause(r);
  else if (can(r, 'resume')) void resume(r);
}

export async function stop(r: Run): Promise<boolean> {
  const sure = await asking.sure(
    `Stop ${short(r.name, 60)}?`,
    `Its agent is ended now. What it said in iteration ${r.iteration} since its last answer is lost; files that it changed stay, and the run can be resumed. To lose nothing, pause it instead.`,
    'Stop the run',
  );
  return sure && tell(() => post('/api/v1/runs/{run}/stop', { ...at(r), body: undefined }));
}

export const resume = (r: Run) => tell(() => post('/api/v1/runs/{run}/resume', { ...at(r), body: {} }));

/** raise gives a run higher limits: it goes on with them, now or when it rests. */
export async function raise(r: Run | RunDetail): Promise<boolean> {
  const values = await asking.ask({
    title: can(r, 'resume') ? 'Raise limits and go on' : `Raise the limits of ${short(r.name, 60)}`,
    text: can(r, 'resume') ? 'Empty fields stay as they are.' : 'It works on meanwhile, and its next iterations are held to the new limits. Empty fields stay as they are.',
    fields: [
      { name: 'max_iterations', label: 'Iterations at most', value: r.max_iterations > 0 ? String(r.max_iterations + 5) : '', hint: `${r.iteration} are used${r.max_iterations > 0 ? ` of ${r.max_iterations}` : ', without a maximum'}` },
      ...(r.kind === 'task' ? [] : [{ name: 'max_cost', label: 'US dollars at most', hint: 'of the whole run, for example 5 or 2.50' }]),
      { name: 'timeout', label: r.kind === 'task' ? 'Time at most, waits aside' : 'Wall clock at most', hint: 'with its unit, for example 90m or 4h' },
    ],
    yes: can(r, 'resume') ? 'Raise and resume' : 'Raise',
  });
  if (!values) return false;
  const body = Object.fromEntries(Object.entries(values).filter(([, v]) => v.trim() !== ''));
  return tell(() => post('/api/v1/runs/{run}/resume', { ...at(r), body }));
}

export async function message(r: Run): Promise<boolean> {
  const values = await asking.ask({
    title: `Message to the agent of ${short(r.name, 60)}`,
    text: 'An agent without a terminal cannot be interrupted: the message goes into the prompt of its next iteration, of a workflow into that of the next agent.',
    fields: [{ name: 'text', label: 'Message', lines: true, needed: true }],
    yes: 'Send',
  });
  return values !== null && tell(() => post('/api/v1/runs/{run}/message', { ...at(r), body: { text: values.text ?? '' } }));
}

export async function rollback(r: Run, to: number): Promise<boolean> {
  const where = to === 0 ? 'before the run' : `after iteration ${to}`;
  const sure = await asking.sure(
    `Roll back to ${where}?`,
    `Files that the run changed since then are put back. A snapshot of what is there now is taken first, so that the rollback can be undone.`,
    'Roll back',
  );
  return sure && tell(() => post('/api/v1/runs/{run}/rollback', { ...at(r), body: { to } }));
}

export const undoRollback = (r: Run) => tell(() => post('/api/v1/runs/{run}/rollback', { ...at(r), body: { undo: true } }));

export const apply = (r: Run) => tell(() => post('/api/v1/runs/{run}/apply', { ...at(r), body: undefined }));

export const answer = (run: string, choice: number, text: string, step = '') =>
  tell(() => post('/api/v1/runs/{run}/answer', { path: { run }, body: { choice, text, step } }));

export const decide = (run: string, decision: 'approve' | 'reject', text: string) => tell(() => post('/api/v1/runs/{run}/review', { path: { run }, body: { decision, text } }));

/** start asks which procedure, and starts it. */
export async function start(): Promise<string> {
  const known = await attempt(() => get('/api/v1/procedures', {}));
  if (!known) return '';
  if (known.procedures.length === 0) {
    await asking.ask({ title: 'There is no procedure yet', text: 'A procedure is a named prompt under procedures: in pawl.yaml. Add one, then start it here or with pawl run NAME.', yes: 'All right' });
    return '';
  }
  const values = await asking.ask({
    title: 'Start a procedure',
    fields: [
      { name: 'procedure', label: 'Procedure', value: known.procedures[0]!.name, choices: known.procedures.map((p) => [p.name, short(p.summary ? `${p.name}: ${p.summary}` : p.name, 90)]) },
      { name: 'context', label: 'Also tell the agent (optional)', lines: true },
      { name: 'max_iterations', label: 'Iterations at most (optional)' },
    ],
    yes: 'Start',
  });
  if (!values) return '';
  const body = {
    procedure: values.procedure ?? '',
    ...(values.context?.trim() ? { context: [values.context] } : {}),
    ...(values.max_iterations?.trim() ? { max_iterations: values.max_iterations.trim() } : {}),
  };
  const done = await attempt(() => post('/api/v1/runs', { body }));
  if (!done) return '';
  notes.done(done.message || 'Started.');
  if (done.run) store.putRuns([done.run]);
  return done.run?.run ?? '';
}

/** Move is a deed with a case. */
export type Move = 'retry' | 'unblock' | 'block' | 'defer' | 'undefer' | 'start' | 'approve' | 'redo' | 'reject';

const words: Record<Move, { title: string; yes: string; why: 'none' | 'welcome' | 'needed'; did: string }> = {
  retry: { title: 'Retry', yes: 'Retry', why: 'none', did: 'is pending again' },
  unblock: { title: 'Unblock', yes: 'Unblock', why: 'none', did: 'is pending again' },
  block: { title: 'Block', yes: 'Block', why: 'needed', did: 'is blocked' },
  defer: { title: 'Defer', yes: 'Defer', why: 'none', did: 'is deferred' },
  undefer: { title: 'Take up again', yes: 'Take up again', why: 'none', did: 'is pending again' },
  start: { title: 'Start', yes: 'Start', why: 'none', did: 'gets the next free slot' },
  approve: { title: 'Approve', yes: 'Approve', why: 'none', did: 'is approved, and waits to land' },
  redo: { title: 'Redo', yes: 'Redo', why: 'needed', did: 'is pending again' },
  reject: { title: 'Reject', yes: 'Reject', why: 'needed', did: 'is blocked' },
};

/** clean removes the workspace of a task. */
export async function clean(c: Case): Promise<boolean> {
  const sure = await asking.sure(`Remove the workspace of ${c.id}?`, 'Its folder goes. Commits and uncommitted files are kept on a ref in the repository; ignored files, such as caches and build results, are lost.', 'Remove the workspace');
  return sure && tell(() => post('/api/v1/cases/{id}/clean', { path: { id: c.id }, body: undefined }));
}

/** takeBack rolls a task's workspace back to where it began. */
export async function takeBack(c: Case): Promise<boolean> {
  const sure = await asking.sure(`Roll ${c.id} back?`, 'All that its agents did is taken out of its workspace. A snapshot is kept, so that this can be undone.', 'Roll back');
  return sure && tell(() => post('/api/v1/cases/{id}/rollback', { path: { id: c.id }, body: {} }));
}

/** extend gives a task more iterations or time. */
export async function extend(c: Case): Promise<boolean> {
  const used = store.runs.find((r) => r.name === c.id);
  const values = await asking.ask({
    title: `Give ${c.id} more room`,
    text: c.status === 'timeout' ? 'Its run goes on where it was.' : '',
    fields: [
      { name: 'max_iterations', label: 'Iterations in all', value: used && used.max_iterations > 0 ? String(used.max_iterations + 5) : '', hint: used ? `${used.iteration} are used` : '' },
      { name: 'timeout', label: 'Time in all (optional)', hint: 'waits aside, with its unit: 1h30m' },
    ],
    yes: 'Give it',
  });
  if (!values) return false;
  const body = Object.fromEntries(Object.entries(values).filter(([, v]) => v.trim() !== ''));
  return tell(() => post('/api/v1/cases/{id}/extend', { path: { id: c.id }, body }));
}

/** quickReasons are what a review most often finds. */
export const quickReasons = ['Tests incomplete', 'Code style issues', 'Missing error handling', 'Performance concerns', 'Security issues'];

export async function move(c: Case, how: Move): Promise<boolean> {
  const word = words[how];
  let why = '';
  if (word.why !== 'none') {
    const values = await asking.ask({
      title: `${word.title} ${c.id}`,
      text: short(c.title, 200),
      ...(how === 'redo' ? { quick: quickReasons } : {}),
      fields: [{ name: 'why', label: how === 'block' ? 'What has to happen first?' : 'What must change?', lines: true, needed: true }],
      yes: word.yes,
    });
    if (!values) return false;
    why = values.why ?? '';
  }
  const now = await attempt(() => post('/api/v1/cases/{id}/actions', { path: { id: c.id }, body: { action: how, why } }));
  if (!now) return false;
  store.putCases([now]);
  store.loadInbox();
  notes.done(`${c.id} ${word.did}.`);
  return true;
}

export async function edit(id: string): Promise<boolean> {
  const c = await attempt(() => get('/api/v1/cases/{id}', { path: { id } }));
  if (!c) return false;
  const values = await asking.ask({
    title: `Edit ${c.id}`,
    fields: [
      { name: 'title', label: 'Title', value: c.title, needed: true },
      { name: 'description', label: 'Description', value: c.description ?? '', lines: true },
      { name: 'acceptance', label: 'Acceptance criteria', value: (c.acceptance ?? []).join('\n'), lines: true, hint: 'one a line' },
      { name: 'tags', label: 'Tags', value: c.tags.join(' '), hint: 'separated by spaces' },
      { name: 'priority', label: 'Priority', value: String(c.priority), hint: 'higher goes first' },
    ],
    yes: 'Save',
  });
  if (!values) return false;
  const body = {
    title: values.title ?? c.title,
    description: values.description ?? '',
    acceptance: (values.acceptance ?? '').split('\n').map((l) => l.trim()).filter((l) => l !== ''),
    tags: (values.tags ?? '').split(/[\s,]+/).filter((t) => t !== ''),
    priority: Number.parseInt(values.priority ?? '', 10) || 0,
  };
  const now = await attempt(() => patch('/api/v1/cases/{id}', { path: { id }, body }));
  if (!now) return false;
  store.putCases([now]);
  notes.done(`${c.id} is changed.`);
  return true;
}

export async function addCase(): Promise<string> {
  const values = await asking.ask({
    title: 'Add a task',
    fields: [
      { name: 'title', label: 'What is to be done?', needed: true },
      { name: 'description', label: 'Description (optional)', lines: true },
      { name: 'acceptance', label: 'Done when (optional)', lines: true, hint: 'one criterion a line' },
      { name: 'tags', label: 'Tags (optional)', hint: 'separated by spaces' },
    ],
    yes: 'Add',
  });
  if (!values) return '';
  const lines = (values.acceptance ?? '').split('\n').map((l) => l.trim()).filter((l) => l !== '');
  const tags = (values.tags ?? '').split(/[\s,]+/).filter((t) => t !== '');
  const now = await attempt(() => post('/api/v1/cases', { body: { title: values.title ?? '', description: values.description ?? '', acceptance: lines, tags } }));
  if (!now) return '';
  store.putCases([now]);
  notes.done(`${now.id} is on the board.`);
  return now.id;
}

export async function importCases(): Promise<void> {
  const values = await asking.ask({
    title: 'Import a list of tasks',
    text: 'Paste Markdown with checkboxes, JSON lines, or an export of beads. All of it is added, or nothing.',
    fields: [{ name: 'text', label: 'List', lines: true, needed: true }],
    yes: 'Import',
  });
  if (!values) return;
  const done = await attempt(() => post('/api/v1/cases/import', { body: { text: values.text ?? '' } }));
  if (!done) return;
  notes.done(`${done.ids.length} cases are on the board.`);
  store.reload();
}

export async function removeCase(c: Case): Promise<boolean> {
  const sure = await asking.sure(`Remove ${c.id} from the board?`, `"${short(c.title, 120)}" is taken off the board. Its history stays, but it cannot be put back as it was.`, 'Remove it');
  if (!sure) return false;
  const gone = await attempt(() => remove('/api/v1/cases/{id}', { path: { id: c.id } }));
  if (!gone) return false;
  store.putCases([c.id]);
  notes.done(`${c.id} is removed.`);
  return true;
}
