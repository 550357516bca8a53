// Notifications of the browser, for a person who looks at something else. The browser
// keeps whether they are wanted.

import type { Need } from './api';
import { short } from './format';
import { router } from './router.svelte';

const read = () => ('Notification' in globalThis ? Notification.permission : 'denied');

class Alerts {
  private permission = $state(read());
  readonly on = $derived(this.permission === 'granted');
  /** open: the person has not been asked yet. */
  readonly open = $derived(this.permission === 'default');

  async ask(): Promise<void> {
    await Notification.requestPermission();
    this.permission = read();
  }

  /** need says that a person is needed. Several pages say the same once: it has the same tag. */
  need(n: Need, many: number): void {
    if (!this.on || (document.visibilityState === 'visible' && document.hasFocus())) return;
    try {
      const note = new Notification(short(n.title, 80), {
        body: short(n.question?.text || n.why, 200) + (many > 1 ? ` (${many} things need you)` : ''),
        tag: `pawl ${location.host}`,
        icon: '/icon.svg',
      });
      note.onclick = () => {
        window.focus();
        router.go('/');
        note.close();
      };
    } catch {
      this.permission = 'denied'; // a browser of phones has them for workers only
    }
  }
}

export const alerts = new Alerts();
