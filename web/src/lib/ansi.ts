// Output of programs as spans with classes. Nothing of it is markup: spans
// carry text, and the page sets it as text.

import { visible } from './format';

/** Span is a piece of a line in one style; style is class names. */
export interface Span {
  text: string;
  style: string;
}

const names = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

interface Pen {
  fg: string;
  bold: boolean;
  dim: boolean;
  under: boolean;
}

const fresh = (): Pen => ({ fg: '', bold: false, dim: false, under: false });

function style(p: Pen): string {
  return [p.fg && `a-${p.fg}`, p.bold && 'a-bold', p.dim && 'a-dim', p.under && 'a-under'].filter(Boolean).join(' ');
}

// CSI … letter, OSC … BEL or ST, and other escapes of two characters.
// eslint would call these control characters suspicious; they are the point.
const escape = /\u001b(?:\[([0-9;:?<=>]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;

function paint(p: Pen, codes: string): Pen {
  const list = codes === '' ? [0] : codes.split(/[;:]/).map((c) => Number(c) || 0);
  let pen = { ...p };
  for (let i = 0; i < list.length; i++) {
    const c = list[i]!;
    if (c === 0) pen = fresh();
    else if (c === 1) pen.bold = true;
    else if (c === 2) pen.dim = true;
    else if (c === 4) pen.under = true;
    else if (c === 22) pen.bold = pen.dim = false;
    else if (c === 24) pen.under = false;
    else if (c === 39) pen.fg = '';
    else if (c >= 30 && c <= 37) pen.fg = names[c - 30]!;
    else if (c >= 90 && c <= 97) pen.fg = names[c - 90]!;
    else if (c === 38 || c === 48) {
      const n = list[i + 1] === 5 ? list[i + 2] : undefined;
      if (c === 38 && n !== undefined && n < 16) pen.fg = names[n % 8]!;
      i += list[i + 1] === 2 ? 4 : 2;
    }
  }
  return pen;
}

/**
 * Painter turns lines into spans; a style that is set on one line holds on the
 * next. Escapes that move the cursor or talk to the terminal do nothing. Of
 * what a carriage return overwrites only the last is kept.
 */
export class Painter {
  private pen = fresh();

  line(text: string): Span[] {
    const back = text.replace(/\r+$/, '').lastIndexOf('\r');
    if (back >= 0) {
      this.line(text.slice(0, back)); // for the styles that it sets
      text = text.slice(back + 1);
    }
    const out: Span[] = [];
    let from = 0;
    const add = (to: number) => {
      if (to > from) out.push({ text: visible(text.slice(from, to).replace(/\r/g, '')), style: style(this.pen) });
    };
    for (const m of text.matchAll(escape)) {
      add(m.index);
      from = m.index + m[0].length;
      if (m[2] === 'm' && m[1] !== undefined) this.pen = paint(this.pen, m[1]);
    }
    add(text.length);
    return out;
  }
}

/** plain is the text without escapes. */
export function plain(text: string): string {
  return visible(text.replace(escape, ''));
}
