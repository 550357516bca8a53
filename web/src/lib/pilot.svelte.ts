// The autopilot: how it is, and what can be asked of it. The bar on every page and the page of sprints share it.

import { get, post } from './api';
import { asking } from './ask.svelte';
import { live } from './live.svelte';
import { attempt, notes } from './notes.svelte';

type Autopilot = Awaited<ReturnType<typeof ask>>;
const ask = () => get('/api/v1/autopilot', {});

const paths = {
  pause: '/api/v1/autopilot/pause',
  resume: '/api/v1/autopilot/resume',
  stop: '/api/v1/autopilot/stop',
} as const;

class Pilot {
  /** now is null until the server has answered. */
  now = $state.raw<Autopilot | null>(null);
  readonly load = live.load(async () => void (this.now = await ask()), 800);

  may = (what: string): boolean => this.now?.actions.includes(what) ?? false;

  async ask(what: keyof typeof paths): Promise<void> {
    if (what === 'stop') {
      const sure = await asking.sure(
        'Stop the autopilot?',
        'Its agents are stopped now, and what they said since their last answer is lost. Their tasks are pending again, and their work is kept. To lose nothing, pause it instead.',
        'Stop it',
      );
      if (!sure) return;
    }
    await this.tell(() => post(paths[what], { body: undefined }));
  }

  /** start has it stay when nothing is left to do: what is answered or approved later goes on at once. */
  start = (slots?: number): Promise<void> =>
    this.tell(() =>
      post('/api/v1/autopilot/start', { body: { keep: true, ...(slots ? { max_parallel: slots } : {}) } }),
    );

  /** proceed starts what is left of a sprint that was cut off, or was planned and held. */
  async proceed(): Promise<void> {
    const { held, ...wish } = this.now?.next ?? {};
    if (held) await this.tell(() => post('/api/v1/sprints', { body: wish }));
  }

  /** next starts it, or pauses one that works, or has a paused one go on. */
  next = (): Promise<void> => (this.may('start') ? this.start() : this.ask(this.may('resume') ? 'resume' : 'pause'));

  async change(mode: 'auto' | 'semi-auto'): Promise<void> {
    await this.tell(() => post('/api/v1/autopilot/mode', { body: { mode } }));
  }

  /** slots is how many tasks are worked on at once from now on. */
  slots = (max_parallel: number): Promise<void> =>
    this.tell(() => post('/api/v1/autopilot/slots', { body: { max_parallel } }));

  private async tell(send: () => Promise<{ message: string }>): Promise<void> {
    const said = await attempt(send);
    if (said) notes.done(said.message || 'Asked.');
    this.load();
  }
}

export const pilot = new Pilot();
