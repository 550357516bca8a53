// The checks of a task, as people write them: one a line.

import type { CaseDetail, Gate } from './api';
import { gateLook, type Look } from './status';

type Check = NonNullable<CaseDetail['verify']>[number];

export const checkHint = 'one command a line, or an object: {"command": "…", "criterion": "…", "files": {…}}';

/** checksAsLines writes a check that is more than one line of a command as an object. */
export const checksAsLines = (list?: Check[]) =>
  (list ?? [])
    .map((c) => {
      const more = c.name || c.criterion || c.files || c.command.includes('\n') || c.command.startsWith('{');
      return more ? JSON.stringify(c) : c.command;
    })
    .join('\n');

/** checkOfLine reads a line; one that is no object is a command. */
export function checkOfLine(line: string): Check | string {
  if (!line.startsWith('{')) return line;
  try {
    return JSON.parse(line) as Check;
  } catch {
    return line;
  }
}

/** proofOf says what the checks of an iteration show of a criterion: it is as the worst of those that name it. */
export function proofOf(criterion: string, gates: readonly Gate[]): Look {
  const same = (g: Gate) => g.criterion?.toLowerCase() === criterion.trim().toLowerCase();
  const checks = gates.filter(same);
  const worst = checks.find((g) => g.status !== 'passed') ?? checks[0];
  if (!worst) return { tone: 'rest', sign: '○', word: 'not checked' };
  const look = gateLook(worst.status);
  const before = worst.before ? `; before the work ${worst.before}` : '';
  return { ...look, word: `${worst.name}: ${look.word}${before}` };
}
