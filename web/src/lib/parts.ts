// A stream of any length, of which a part is kept in memory: it grows at both ends as
// a person scrolls, and what is far away is dropped.

/** Part is a piece of a stream as the server sends it, by its offsets. */
export interface Part {
  offset: number;
  next: number;
  size: number;
}

/** Capacity is how much is kept, in the unit that weigh returns. */
export interface Capacity<P> {
  weigh: (part: P) => number;
  most: number;
}

/** Piece is a stretch of a stream in order; only what was left out is missing in it. It is replaced, not changed. */
export class Piece<P extends Part> {
  private constructor(
    readonly parts: readonly P[],
    private readonly capacity: Capacity<P>,
  ) {}

  static of<P extends Part>(part: P, capacity: Capacity<P>): Piece<P> {
    return new Piece([part], capacity);
  }

  get from(): number {
    return this.parts[0]!.offset;
  }

  get to(): number {
    return this.parts.at(-1)!.next;
  }

  /** full: one more part at one end pushes one out at the other. */
  get full(): boolean {
    return (
      this.parts.length > 1 &&
      this.weight(this.parts) + Math.max(...this.parts.map(this.capacity.weigh)) > this.capacity.most
    );
  }

  /** after adds what follows, and lets go of what is first; false when the part does not follow, or has nothing. */
  after(part: P): Piece<P> | false {
    if (part.offset < this.to || part.next <= part.offset) return false;
    const parts = [...this.parts, part];
    let weight = this.weight(parts);
    while (parts.length > 2 && weight > this.capacity.most) weight -= this.capacity.weigh(parts.shift()!);
    return new Piece(parts, this.capacity);
  }

  /** before adds what came before, and lets go of what is last; false likewise. */
  before(part: P): Piece<P> | false {
    if (part.next > this.from || part.next <= part.offset) return false;
    const parts = [part, ...this.parts];
    let weight = this.weight(parts);
    while (parts.length > 2 && weight > this.capacity.most) weight -= this.capacity.weigh(parts.pop()!);
    return new Piece(parts, this.capacity);
  }

  /** shared is a part that both have; undefined when there is none. */
  shared(other: Piece<P>): P | undefined {
    return this.parts.find((p) => other.parts.includes(p));
  }

  private weight(parts: readonly P[]): number {
    return parts.reduce((n, p) => n + this.capacity.weigh(p), 0);
  }
}

/** tallest is the most that a stream's whole height may be, in px: browsers have a bound. */
const tallest = 6_000_000;

/** tall is about how high so many bytes are of a stream of that size. */
export const tall = (bytes: number, size: number) =>
  Math.round(Math.max(0, bytes) * Math.min(0.2, tallest / Math.max(1, size)));

/** placeOf is the offset that is about at a height: the other way round. */
export const placeOf = (px: number, size: number) =>
  Math.max(0, Math.floor(px / Math.min(0.2, tallest / Math.max(1, size))));
