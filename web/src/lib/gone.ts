import { onDestroy } from 'svelte';

/**
 * trackGone is called while a component is made. It returns a function that says
 * whether the component is gone: after an await its props and what derives from
 * its state are not read any more then.
 */
export function trackGone(): () => boolean {
  let gone = false;
  onDestroy(() => (gone = true));
  return () => gone;
}
