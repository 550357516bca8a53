// A text that is cut on the screen is there in full under the pointer.

/** wholeTexts sets the title of what is cut when it is pointed at, and takes it away when it has room. */
export function wholeTexts(root: Document): void {
  root.addEventListener('pointerover', (e) => {
    const at = e.target instanceof Element ? e.target.closest<HTMLElement>('.cut, .lines') : null;
    if (!at || (at.title !== '' && at.dataset.whole === undefined)) return;
    const cut = at.scrollWidth > at.clientWidth || at.scrollHeight > at.clientHeight + 1;
    at.title = cut ? (at.textContent?.trim() ?? '') : '';
    at.dataset.whole = '';
  });
}
