// Finds cases by text and tag. Texts are prepared once, so that ten thousand
// cases are looked through while a key is pressed.

/** Filterable is what is looked at. */
export interface Filterable {
  id: string;
  title: string;
  tags: string[];
  parent: string;
}

/** Wanted is a filter that was read. */
export interface Wanted {
  words: string[];
  tags: string[];
  notTags: string[];
  parent: string;
}

/** readFilter takes words, #tag or tag:x, -#tag, and in:op-001. */
export function readFilter(text: string): Wanted {
  const w: Wanted = { words: [], tags: [], notTags: [], parent: '' };
  for (const part of text.toLowerCase().split(/\s+/)) {
    if (part === '') continue;
    const tag = /^(-?)(?:#|tag:)(.+)$/.exec(part);
    if (tag) (tag[1] ? w.notTags : w.tags).push(tag[2]!);
    else if (part.startsWith('in:')) w.parent = part.slice(3);
    else w.words.push(part);
  }
  return w;
}

/** haystack is the text of a case in which words are looked for. */
export const haystack = (c: Filterable) => `${c.id}\n${c.title}\n${c.tags.join(' ')}`.toLowerCase();

/** fits says whether a case is wanted; hay is its haystack. */
export function fits(c: Filterable, hay: string, w: Wanted): boolean {
  for (const word of w.words) if (!hay.includes(word)) return false;
  if (w.parent !== '' && c.parent.toLowerCase() !== w.parent) return false;
  for (const tag of w.tags) if (!has(c, tag)) return false;
  for (const tag of w.notTags) if (has(c, tag)) return false;
  return true;
}

const has = (c: Filterable, tag: string) => c.tags.some((t) => t.toLowerCase() === tag);

/** isEmpty is true for a filter that lets everything through. */
export const isEmpty = (w: Wanted) => w.words.length + w.tags.length + w.notTags.length === 0 && w.parent === '';
