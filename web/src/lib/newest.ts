// Answers arrive in another order than they were asked for in. What was asked
// for last is newest: an older answer must not take its place, because nothing
// that happens later would put it right.

/** Newest knows, by id, when what is shown of it was asked for. */
export class Newest<T> {
  private asked = 0;
  private readonly at = new Map<string, number>();

  constructor(private readonly id: (item: T) => string) {}

  /** ask is called before a request; the number goes with its answer. */
  ask(): number {
    return ++this.asked;
  }

  /** take is whether an answer about one of them counts, and not one that was asked for later. */
  take(id: string, asked: number): boolean {
    if ((this.at.get(id) ?? 0) > asked) return false;
    this.at.set(id, asked);
    return true;
  }

  /**
   * merge makes a list of all of them current: of what was taken since it was
   * asked for, known has the newer. more are those that are only there.
   */
  merge(list: T[], known: T[], asked: number): { list: T[]; more: T[] } {
    const newer = new Map(known.filter((k) => (this.at.get(this.id(k)) ?? 0) > asked).map((k) => [this.id(k), k]));
    const merged = list.flatMap((item) => {
      const id = this.id(item);
      if (this.take(id, asked)) return [item];
      const now = newer.get(id);
      newer.delete(id);
      return now ? [now] : []; // it is gone since
    });
    return { list: merged, more: [...newer.values()] };
  }
}
