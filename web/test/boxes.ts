// What is wrong with the boxes of a page: outside of the window, one over the other, cut off without a sign.

import type { Page } from 'playwright-core';

/** faults measures every text and control that is seen, in the top dialog where one is open. */
export const faults = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const found = new Set<string>();
    const root = [...document.querySelectorAll<HTMLElement>('dialog[open]')].at(-1) ?? document.body;
    const named = (e: Element) => {
      const name = [...e.classList].filter((c) => !c.startsWith('svelte-')).join('.');
      return `${e.closest('section, dialog, nav, li, tr')?.tagName.toLowerCase() ?? ''} ${e.tagName.toLowerCase()}${name ? `.${name}` : ''}`;
    };
    const quoted = (text: string) => JSON.stringify(text.trim().slice(0, 40));
    type Box = { left: number; top: number; right: number; bottom: number };
    type Piece = Box & { e: Element; text: string; floats: Element | null };
    const pieces: Piece[] = [];
    /** floating is what lies over the page on purpose: it covers what scrolls below it. */
    const floating = (e: Element): Element | null => {
      for (let at: Element | null = e; at && at !== root; at = at.parentElement)
        if (['fixed', 'sticky'].includes(getComputedStyle(at).position)) return at;
      return null;
    };
    /** unseen is what is there for readers alone. */
    const unseen = (e: Element) => {
      for (let at: Element | null = e; at && at !== root; at = at.parentElement)
        if (getComputedStyle(at).clipPath !== 'none') return true;
      return false;
    };
    const cuts = (v: string) => v === 'hidden' || v === 'clip';
    const scrolls = (v: string) => v === 'auto' || v === 'scroll';
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const e = node.parentElement!;
      const text = node.textContent ?? '';
      if (!text.trim() || e.closest('.unseen, svg, option, [hidden], style, script')) continue;
      if (!e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || unseen(e)) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) {
        let box: Box | null = { left: rect.left, top: rect.top, right: rect.right, bottom: rect.bottom };
        if (rect.width < 1 || rect.height < 1) continue;
        let outside = true;
        for (let at: Element | null = e; at && at !== document.documentElement; at = at.parentElement) {
          const s = getComputedStyle(at);
          if (s.display === 'inline') continue;
          const b = at.getBoundingClientRect();
          if (scrolls(s.overflowX) || scrolls(s.overflowY)) outside = false;
          const sign =
            s.textOverflow === 'ellipsis' ||
            s.webkitLineClamp !== 'none' ||
            e.closest('[title]') ||
            at.tagName === 'INPUT';
          const wide = box.right > b.right + 1.5 || box.left < b.left - 1.5;
          const high = box.bottom > b.bottom + 2 + rect.height * 0.3 || box.top < b.top - 2 - rect.height * 0.3;
          if (!sign && ((cuts(s.overflowX) && wide) || (cuts(s.overflowY) && high)))
            found.add(`cut off: ${named(at)} ${quoted(text)}`);
          if (s.overflowX !== 'visible' || s.overflowY !== 'visible') {
            box = {
              left: Math.max(box.left, b.left),
              top: Math.max(box.top, b.top),
              right: Math.min(box.right, b.right),
              bottom: Math.min(box.bottom, b.bottom),
            };
            if (box.right - box.left < 1 || box.bottom - box.top < 1) box = null;
          }
          if (!box) break;
          if (at === root) break;
        }
        if (!box) continue;
        if (outside && (box.right > innerWidth + 1 || box.left < -1)) found.add(`outside: ${named(e)} ${quoted(text)}`);
        pieces.push({ ...box, e, text, floats: floating(e) });
      }
    }
    for (const e of root.querySelectorAll<HTMLElement>('button, a, input, select, textarea')) {
      const b = e.getBoundingClientRect();
      if (b.width === 0 || e.closest('.unseen') || !e.checkVisibility({ visibilityProperty: true })) continue;
      let scroller: Element | null = e.parentElement;
      while (scroller && getComputedStyle(scroller).overflowX === 'visible') scroller = scroller.parentElement;
      if (!scroller && (b.right > innerWidth + 1 || b.left < -1))
        found.add(`outside: ${named(e)} ${quoted(e.textContent ?? '')}`);
    }
    pieces.sort((a, b) => a.top - b.top);
    pieces.forEach((a, i) => {
      for (let n = i + 1; n < pieces.length && pieces[n]!.top < a.bottom - 3; n++) {
        const b = pieces[n]!;
        if (a.e === b.e || a.floats !== b.floats) continue;
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 2 && high > 3)
          found.add(`over each other: ${quoted(a.text)} and ${quoted(b.text)} at ${named(a.e)}`);
      }
    });
    if (document.documentElement.scrollWidth > innerWidth) found.add('the page is wider than its window');
    return [...found];
  });
