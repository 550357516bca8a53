// Many reasons to load the same thing are one load.

/**
 * coalesce returns a function that does the work at once if it rests, and once
 * more after it when it was called meanwhile, no sooner than gap ms after the
 * last start. Errors go to failed.
 */
export function coalesce(work: () => Promise<void>, gap: number, failed: (error: unknown) => void): () => void {
  let busy = false;
  let wanted = false;
  let last = -Infinity;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const begin = async () => {
    timer = undefined;
    busy = true;
    wanted = false;
    last = performance.now();
    try {
      await work();
    } catch (error) {
      failed(error);
    }
    busy = false;
    if (wanted) plan();
  };
  const plan = () => {
    if (timer !== undefined) return;
    const left = last + gap - performance.now();
    if (left <= 0) void begin();
    else timer = setTimeout(() => void begin(), left);
  };
  return () => {
    if (busy) wanted = true;
    else plan();
  };
}
