// Both sides of a file that a person and an agent changed, from its text with markers.

/** Line is a line of one side, of all, or a heading above one. */
export interface Line {
  side: '' | 'mine' | 'base' | 'agent';
  text: string;
  heading?: boolean;
}

const signs = { '<': 'mine', '|': 'base', '=': 'agent', '>': '' } as const;
const words = { mine: 'Mine', base: 'Before both', agent: 'The agent’s' } as const;
const marker = /^([<|=>])\1{22}(?: mine| base| agent)?\r?$/;

/** marked is whether a text has a marker still. */
export const marked = (text: string) => text.split('\n').some((l) => marker.test(l));

/** sides are the lines in conflict with a few around them; an ellipsis is for the rest. */
export function sides(text: string, around = 3): Line[] {
  const all: Line[] = [];
  let side: Line['side'] = '';
  for (const l of text.replace(/\n$/, '').split('\n')) {
    const sign = marker.exec(l)?.[1] as keyof typeof signs | undefined;
    if (!sign) all.push({ side, text: l.replace(/\r$/, '') });
    else if ((side = signs[sign])) all.push({ side, text: words[side], heading: true });
  }
  const near = (i: number) => all.slice(Math.max(0, i - around), i + around + 1).some((l) => l.side !== '');
  return all.flatMap((l, i) => (near(i) ? [l] : i === 0 || near(i - 1) ? [{ side: '', text: '…' } as Line] : []));
}
