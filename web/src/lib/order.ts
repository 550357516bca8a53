// The place of a task among others is its priority; those of one priority are in the order of their scores.

/** Placed is what has a place. */
export interface Placed {
  id: string;
  priority: number;
}

/** moved is which priorities must become what, so that the task at from comes to be at to: as few as can be, and the rest keeps its order. */
export function moved(list: readonly Placed[], from: number, to: number): [id: string, priority: number][] {
  const rest = list.toSpliced(from, 1);
  const below = rest[to];
  const above = rest[to - 1];
  let least = below ? below.priority + 1 : above!.priority - 1;
  const out: [string, number][] = [[list[from]!.id, least]];
  // Those above go up where they must; what was alike stays alike.
  let last: number | undefined;
  for (const p of rest.slice(0, to).reverse()) {
    if (p.priority !== last) least = Math.max(least + 1, (last = p.priority));
    if (least === p.priority) break;
    out.push([p.id, least]);
  }
  return out;
}
