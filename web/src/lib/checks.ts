// The checks of a task, as people write them: one a line.

import type { CaseDetail } from './api';
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

/** Proof is a criterion with a check that shows it. */
export type Proof = CaseDetail['proof'][number];

/** lookOf says whether a criterion is checked, and how that ended. */
export function lookOf(p: Proof): Look {
  if (!p.check) return { tone: 'rest', sign: '○', word: 'not checked' };
  const look = p.after ? gateLook(p.after) : { tone: 'rest' as const, sign: '○', word: 'not run yet' };
  return { ...look, word: `${p.check}: ${look.word}${p.before ? `; before the work ${p.before}` : ''}` };
}
