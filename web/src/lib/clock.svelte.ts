// One clock for all relative times of a page: it ticks once a second while the
// page can be seen, and it goes by the server's time.

class Clock {
  /** now is the server's time in milliseconds. */
  now = $state(Date.now());
  private ahead = 0;
  private timer: ReturnType<typeof setInterval> | undefined;

  start(): void {
    const run = () => {
      clearInterval(this.timer);
      this.tick();
      if (!document.hidden) this.timer = setInterval(() => this.tick(), 1000);
    };
    document.addEventListener('visibilitychange', run);
    run();
  }

  /** server takes the server's time as it was just now; the browser's clock may differ. */
  server(time: string): void {
    const at = Date.parse(time);
    if (!Number.isNaN(at)) this.ahead = at - Date.now();
    this.tick();
  }

  private tick(): void {
    this.now = Date.now() + this.ahead;
  }
}

export const clock = new Clock();
