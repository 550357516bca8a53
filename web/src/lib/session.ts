// The key of the pages, which the API wants beside the cookie: the cookie goes
// to every port of this host, the key stays with this one (internal/ask/web/guard.go).

const name = 'pawl.key';

/** enter keeps the key that the address of the entry leads to, and takes it out of the address. */
export function enter(): void {
  const key = /^#key=([0-9a-f]{64})$/.exec(location.hash)?.[1];
  if (!key) return;
  localStorage.setItem(name, key);
  history.replaceState(history.state, '', location.pathname + location.search);
}

/** key is empty in a browser that was not let in. */
export const key = (): string => localStorage.getItem(name) ?? '';
