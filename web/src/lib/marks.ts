// What a person marked in a review, kept in this browser until it is decided: files that were
// viewed, and comments. Of what others decided the oldest goes first.

const place = 'pawl.marks';
const most = 200;

function all(): Record<string, unknown[]> {
  try {
    return (JSON.parse(localStorage.getItem(place) ?? '{}') as Record<string, unknown[]> | null) ?? {};
  } catch {
    return {}; // no storage, or not ours
  }
}

export function kept<T>(name: string): T[] {
  const list = all()[name];
  return Array.isArray(list) ? (list as T[]) : [];
}

/** keep keeps a list; an empty one is forgotten. */
export function keep(name: string, list: unknown[]): void {
  const now = all();
  delete now[name]; // what is kept last is last
  if (list.length > 0) now[name] = list;
  try {
    localStorage.setItem(place, JSON.stringify(Object.fromEntries(Object.entries(now).slice(-most))));
  } catch {
    // No storage, or it is full: it holds until the page is closed.
  }
}
