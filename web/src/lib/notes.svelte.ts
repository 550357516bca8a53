// What the page tells the person: notes that go away, problems, and words for
// screen readers.

import { explain, type Problem } from './api';
import { inBrowser } from './format';

/** Note is a message at the edge of the page. */
export interface Note {
  id: number;
  kind: 'done' | 'problem';
  text: string;
  more: string[];
  /** stays until it is closed. */
  stays: boolean;
}

class Notes {
  list = $state.raw<Note[]>([]);
  /** spoken is read out by screen readers when it changes. */
  spoken = $state('');
  private next = 1;

  /** done says what was done. */
  done(text: string): void {
    this.add({ kind: 'done', text, more: [], stays: false }, 4000);
  }

  /** failed shows a problem as its severity asks for. Aborted requests are none. */
  failed(thrown: unknown): void {
    if (thrown instanceof DOMException && thrown.name === 'AbortError') return;
    const p: Problem = explain(thrown);
    if (p.severity === 'low') return;
    const stays = p.severity === 'high' || p.severity === 'critical';
    if (this.list.some((n) => n.text === p.message)) return;
    this.add(
      { kind: 'problem', text: p.message, more: inBrowser([...p.details.slice(0, 5), ...p.suggestions]), stays },
      9000,
    );
  }

  close(id: number): void {
    this.list = this.list.filter((n) => n.id !== id);
  }

  /** say reads out, for who does not see the page. */
  say(text: string): void {
    this.spoken = text;
  }

  private add(note: Omit<Note, 'id'>, time: number): void {
    const id = this.next++;
    this.list = [...this.list, { ...note, id }].slice(-4);
    if (!note.stays) setTimeout(() => this.close(id), time);
  }
}

export const notes = new Notes();

/** attempt does something for the person, and shows what is wrong if it fails. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    notes.failed(error);
    return undefined;
  }
}
