// A file of any size, of which a part is held: it grows at both ends as a
// person scrolls, and what is far away is let go.

/** Part is a piece of a file as the server sends it. */
export interface Part {
  offset: number;
  next: number;
  size: number;
  text: string;
}

/** Held is how much is kept; a part is at most this many bytes. */
export const partSize = 128 << 10;
const most = 12;

/** Piece is a stretch of a file without gaps. It is replaced, not changed. */
export class Piece {
  private constructor(
    private readonly parts: Part[],
    readonly size: number,
  ) {}

  static of(part: Part): Piece {
    return new Piece([part], part.size);
  }

  get from(): number {
    return this.parts[0]!.offset;
  }

  get to(): number {
    return this.parts.at(-1)!.next;
  }

  /** after adds what follows; false when the part does not. */
  after(part: Part): Piece | false {
    if (part.offset !== this.to) return false;
    if (part.next === part.offset) return new Piece(this.parts, part.size);
    return new Piece([...this.parts, part].slice(-most), part.size);
  }

  /** before adds what came before; false when the part does not end where this begins. */
  before(part: Part): Piece | false {
    if (part.next !== this.from || part.next === part.offset) return false;
    return new Piece([part, ...this.parts].slice(0, most), part.size);
  }

  /** text is all that is held; cut says that it does not begin at the file's start. */
  get text(): string {
    return this.parts.map((p) => p.text).join('');
  }

  get cut(): boolean {
    return this.from > 0;
  }
}
