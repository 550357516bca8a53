// Addresses of pages. A link is an ordinary link; a click on it changes the
// page without asking the server for it again.

/** Place is where the person is. */
export interface Place {
  /** First part of the path; '' is the first page. */
  page: string;
  /** Second part, decoded: an id, or ''. */
  id: string;
  query: URLSearchParams;
}

/** read makes a place of an address. */
export function read(pathname: string, search: string): Place {
  const [page = '', id = ''] = pathname.replace(/^\/+/, '').split('/');
  return { page: page === 'now' ? '' : page, id: decode(id), query: new URLSearchParams(search) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a percent sign that encodes nothing
  }
}

class Router {
  place = $state.raw<Place>({ page: '', id: '', query: new URLSearchParams() });

  start(): void {
    const update = () => (this.place = read(location.pathname, location.search));
    addEventListener('popstate', update);
    addEventListener('click', (e) => this.click(e));
    update();
  }

  /** go opens an address; replace leaves no step to go back to. */
  go(path: string, how: 'push' | 'replace' = 'push'): void {
    const same = path === location.pathname + location.search;
    if (!same) history[how === 'push' ? 'pushState' : 'replaceState'](null, '', path);
    this.place = read(location.pathname, location.search);
  }

  /** set changes one part of the query of this page. */
  set(name: string, value: string, how: 'push' | 'replace' = 'replace'): void {
    const query = new URLSearchParams(location.search);
    if (value === '') query.delete(name);
    else query.set(name, value);
    const text = query.toString();
    this.go(location.pathname + (text ? '?' + text : ''), how);
  }

  private click(e: MouseEvent): void {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    const link = (e.target as Element | null)?.closest?.('a[href]');
    if (
      !(link instanceof HTMLAnchorElement) ||
      link.target ||
      link.hasAttribute('download') ||
      link.origin !== location.origin
    )
      return;
    if (link.pathname.startsWith('/api/')) return;
    e.preventDefault();
    this.go(link.pathname + link.search);
  }
}

export const router = new Router();

/** path makes an address of parts that may hold anything. */
export const path = (...parts: string[]) => '/' + parts.map(encodeURIComponent).join('/');
