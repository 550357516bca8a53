// Keys of pages. Each page and panel says which keys it has; help shows them,
// and a key is one of them or nothing.

import { untrack } from 'svelte';

/** Key is one key and what it does. */
export interface Key {
  /** As the browser names it: 'j', 'R', ' ', 'Enter', 'Escape'; 'g b' is one after the other; 'Ctrl k' works also in a text and over a dialog. */
  key: string;
  also?: string[];
  label: string;
  run: (e: KeyboardEvent) => void;
  /** on is whether it does something now; it is shown in help all the same. */
  on?: () => boolean;
  /** everywhere: it works also while a text is written. */
  everywhere?: boolean;
}

/** Group is the keys of one page, or of one dialog. */
export interface Group {
  name: string;
  keys: Key[];
  /** dialog: they work in the dialog that names the group, and nowhere else. */
  dialog: boolean;
}

const names: Record<string, string> = {
  ' ': 'Space',
  Escape: 'Esc',
  Delete: 'Del',
  ArrowDown: '↓',
  ArrowUp: '↑',
  ArrowLeft: '←',
  ArrowRight: '→',
};

/** shown is a key as people know it, in parts for keys in a row. */
export const shown = (key: string) => (key === ' ' ? ['Space'] : key.split(' ').map((k) => names[k] ?? k));

/** writes is true where a key is text. */
function writes(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable ||
    target.matches(
      'textarea, select, input:not([type=checkbox]):not([type=radio]):not([type=range]):not([type=button])',
    )
  );
}

/** presses is true where Enter and Space press what has the focus. */
const presses = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.matches('button, a[href], summary, input[type=checkbox], input[type=radio]');

class Keys {
  groups = $state.raw<Group[]>([]);
  /** help is whether the keys are shown. */
  help = $state(false);
  private first = '';
  private firstAt = 0;

  start(): void {
    addEventListener('keydown', (e) => this.press(e));
  }

  /** add shows and obeys keys until the function that it returns is called. The last group goes first. */
  add(name: string, keys: Key[], dialog = false): () => void {
    const group = { name, keys, dialog };
    // It is called in effects, which must not depend on the list that they change.
    untrack(() => (this.groups = [...this.groups, group]));
    return () => untrack(() => (this.groups = this.groups.filter((g) => g !== group)));
  }

  /** listed are the groups that work where the person is: those of the page, or of the dialog that is open over it. */
  listed(): Group[] {
    const all = this.groups.filter((g) => g.name !== 'Help').reverse();
    const panel = all.filter((g) => g.dialog);
    return panel.length > 0 ? panel : all;
  }

  private press(e: KeyboardEvent): void {
    if (e.defaultPrevented || e.isComposing || e.altKey) return;
    if (e.ctrlKey || e.metaKey) {
      const key = this.groups.flatMap((g) => g.keys).find((k) => k.key === `Ctrl ${e.key}`);
      if (!key || key.on?.() === false) return;
      e.preventDefault();
      return key.run(e);
    }
    const writing = writes(e.target);
    // A dialog has its own keys; those of what is behind it are off.
    const dialog = [...document.querySelectorAll<HTMLElement>('dialog[open]')].at(-1);
    if ((e.key === 'Enter' || e.key === ' ') && presses(e.target)) return;
    const chord = this.first !== '' && e.timeStamp - this.firstAt < 1500 ? `${this.first} ${e.key}` : '';
    // The second key of two is none of the page's own.
    const pressed =
      !dialog && this.groups.some((g) => !g.dialog && g.keys.some((k) => k.key === chord && k.on?.() !== false))
        ? chord
        : e.key;
    this.first = '';
    for (const group of [...this.groups].reverse()) {
      if (dialog ? dialog.dataset.keys !== group.name : group.dialog) continue;
      for (const key of group.keys) {
        const all = [key.key, ...(key.also ?? [])];
        if (writing && !key.everywhere) continue;
        if (all.includes(pressed)) {
          if (key.on && !key.on()) continue;
          e.preventDefault();
          key.run(e);
          return;
        }
        if (!dialog && all.some((k) => k.length > 2 && k.startsWith(e.key + ' '))) {
          this.first = e.key;
          this.firstAt = e.timeStamp;
        }
      }
    }
  }
}

export const keys = new Keys();
