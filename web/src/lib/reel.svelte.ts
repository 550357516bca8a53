// A stream of any length in a box that scrolls. The box is as high as the whole
// stream would be, about; of it only the stretch in view is loaded and shown:
//
//	above    room for what is before the piece
//	content  the piece
//	below    room for what is after it
//
// Scrolling to an end of the piece loads what comes next there, scrolling
// elsewhere loads the piece at that place. At the end of a stream that grows the
// view stays at the end.

import { tick, untrack } from 'svelte';
import { notes } from './notes.svelte';
import { Piece, placeOf, tall, type Capacity, type Part } from './parts';

/** Source loads parts: from an offset on, or up to one; end is the last one. */
export interface Source<P> {
  from(offset: number): Promise<P>;
  before(offset: number): Promise<P>;
  end(): Promise<P>;
}

const near = 600; // px before an end of the piece at which more is loaded
const behind = 1 << 20; // bytes after which the end is shown, and not what came up to it

export class Reel<P extends Part> {
  piece = $state.raw<Piece<P> | null>(null);
  size = $state(0);
  busy = $state(false);
  /** gone says why there is nothing to show. */
  gone = $state('');
  box = $state.raw<HTMLElement>();
  content = $state.raw<HTMLElement>();
  readonly above = $derived(this.piece ? tall(this.piece.from, this.size) : 0);
  readonly below = $derived(this.piece ? tall(this.size - this.piece.to, this.size) : 0);
  private follows = true;
  private ended = false;
  private bottom = false; // there is nothing before the piece
  private wanted = false;
  private top = 0; // where the box was last

  constructor(
    private readonly source: Source<P>,
    private readonly capacity: Capacity<P>,
    /** where is the height in content at which a part begins. */
    private readonly where: (part: P) => number,
  ) {}

  /** begin shows the end of the stream, or its beginning. */
  begin(atEnd: boolean): Promise<void> {
    return this.work(() => this.open(atEnd ? 'end' : 0));
  }

  /** end lets go of everything: the box is away. */
  end(): void {
    this.ended = true;
  }

  /** grown says where the stream ends now. */
  grown(size: number): void {
    if (size <= this.size && this.piece) return;
    this.size = Math.max(size, this.size);
    this.more();
  }

  /**
   * more looks whether there is more, where nobody says how much. An effect may
   * call it: it then depends on nothing of what the look itself changes.
   */
  more(): void {
    this.wanted = true;
    untrack(() => this.next());
  }

  /**
   * scrolled is to be told of every scroll of the box. It comes later than the
   * scroll itself, when more may be there already: only who goes up leaves the end.
   */
  scrolled(): void {
    const top = this.box?.scrollTop ?? 0;
    if (top === this.top) return; // it was move
    if (this.atEnd()) this.follows = true;
    else if (top < this.top - 1) this.follows = false;
    this.top = top;
    void this.work(() => this.settle());
  }

  /** move scrolls the box. */
  private move(to: number): void {
    if (!this.box) return;
    this.box.scrollTop = to;
    this.top = this.box.scrollTop;
  }

  private atEnd(): boolean {
    const b = this.box;
    return !b || (b.scrollHeight - b.scrollTop - b.clientHeight < 60 && (this.piece?.to ?? 0) >= this.size - behind);
  }

  private async work(what: () => Promise<unknown>): Promise<void> {
    if (this.busy || this.ended) return;
    this.busy = true;
    try {
      await what();
      await this.settle();
    } catch (error) {
      if ((error as { status?: number }).status !== 404) notes.failed(error);
      else if (!this.piece) this.gone = (error as Error).message;
    }
    this.busy = false;
    this.next();
  }

  /** next does what was wanted meanwhile. */
  private next(): void {
    if (!this.wanted || this.busy || this.ended) return;
    this.wanted = false;
    if (!this.piece) void this.begin(true);
    else if (this.follows) void this.work(() => this.follow());
  }

  private async open(at: number | 'end'): Promise<void> {
    const part = await (at === 'end' ? this.source.end() : this.source.from(at));
    this.gone = '';
    this.bottom = false;
    this.size = Math.max(this.size, part.size, part.next);
    this.piece = Piece.of(part, this.capacity);
    this.follows = at === 'end';
    await tick();
    this.move(at === 'end' ? (this.box?.scrollHeight ?? 0) : this.above);
  }

  private async follow(): Promise<void> {
    do {
      if (this.size - this.piece!.to > behind) return this.open('end');
      if (!(await this.forward())) return;
      if (this.follows) this.move(this.box?.scrollHeight ?? 0);
    } while (this.follows && !this.ended && this.piece!.to < this.size);
  }

  private async forward(): Promise<boolean> {
    const piece = this.piece!;
    const part = await this.source.from(piece.to);
    this.size = Math.max(this.size, part.size);
    return this.put(piece, piece.after(part));
  }

  private async backward(): Promise<boolean> {
    const piece = this.piece!;
    const part = await this.source.before(piece.from);
    const moved = await this.put(piece, piece.before(part));
    this.bottom = !moved;
    return moved;
  }

  /** put shows another piece; what is in view stays where it is. */
  private async put(was: Piece<P>, now: Piece<P> | false): Promise<boolean> {
    if (!now || this.ended || this.piece !== was) return false;
    const anchor = now.shared(was);
    const before = anchor && this.box ? this.above + this.where(anchor) : 0;
    this.piece = now;
    await tick();
    if (anchor && this.box) {
      const shift = this.above + this.where(anchor) - before;
      if (shift !== 0) this.move(this.box.scrollTop + shift);
    }
    return true;
  }

  /**
   * settle loads until what is in view is there. A full piece is moved one way
   * only, and loses nothing that is in view: else it goes to and fro for ever
   * where all that may be kept is less high than the box.
   */
  private async settle(): Promise<void> {
    let way = '';
    for (let more = true; more && !this.ended && this.box && this.content && this.piece;) {
      const { scrollTop: top, clientHeight: height } = this.box;
      const begin = this.above;
      const end = begin + this.content.offsetHeight;
      if ((top + height <= begin && this.piece.from > 0 && !this.bottom) || (top >= end && this.piece.to < this.size)) {
        const was = this.piece.from;
        // The stream may have grown since the box was scrolled to its end.
        const last = top + height > this.box.scrollHeight - near;
        const place = top >= end ? this.piece.to + placeOf(top - end, this.size) : placeOf(top, this.size);
        await this.open(last ? 'end' : Math.min(place, Math.max(0, this.size - 1)));
        more = this.piece.from !== was;
        continue;
      }
      const { parts, full } = this.piece;
      const mayBack = !full || (way !== 'on' && begin + this.where(parts.at(-1)!) > top + height);
      const mayOn = !full || (way !== 'back' && begin + this.where(parts[1]!) <= top);
      if (top < begin + near && this.piece.from > 0 && !this.bottom && mayBack) {
        way = 'back';
        more = await this.backward();
      } else if (top + height > end - near && this.piece.to < this.size && mayOn) {
        way = 'on';
        more = await this.forward();
      } else more = false;
    }
  }
}
