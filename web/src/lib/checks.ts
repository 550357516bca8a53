// The checks of a task, as people write them: one a line.

import type { CaseDetail } from './api';

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
