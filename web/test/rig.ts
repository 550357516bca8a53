// One project, one server and one browser for all browser tests, which run one
// after the other.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { after, before } from 'node:test';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { api, fill, make, type Project } from './project';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export let p: Project;
let browser: Browser;
export const runs: Record<string, string> = {};

before(async () => {
  p = await make(process.env.PAWL ?? 'pawl');
  fill(p);
  p.run('run', 'hostile', '-q');
  p.begin('run', 'slow-import', '-q');
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--host-resolver-rules=MAP attacker.example 127.0.0.1'],
  });
  const context = await viewer(1280);
  const page = await context.newPage();
  await page.goto(p.url);
  await page.getByRole('article', { name: 'slow-import' }).waitFor();
  for (const r of (await api(page, '/api/v1/runs')).runs as { name: string; run: string }[]) runs[r.name] = r.run;
  await context.close();
});
after(async () => {
  await browser?.close();
  await p?.close();
});

export const at = (path: string) => new URL(path, p.url).href;
/** pressed are the keys that did something in a test: where, a tab, and the key. A dialog's keys are where its name is. */
export const pressed = new Set<string>();
/** listed are the keys that ? showed: the group, a tab, where it was shown, a tab, and the key. */
export const listed = new Set<string>();

/** noted notes which keys of a browser do something. */
export async function noted(context: BrowserContext): Promise<BrowserContext> {
  await context.exposeFunction('pressed', (what: string) => void pressed.add(what));
  await context.addInitScript(() => {
    let field: EventTarget | null = null;
    const count = (what: string) => {
      const n = JSON.parse(sessionStorage.getItem('acts') ?? '{}') as Record<string, number>;
      n[what] = (n[what] ?? 0) + 1;
      sessionStorage.setItem('acts', JSON.stringify(n));
    };
    const act = (what: string) => (count(what), (field = null));
    // The document does not hear of a click that found its button moved: Playwright holds it back, and clicks again.
    document.addEventListener('pointerdown', () => act('click'), true);
    addEventListener(
      'keydown',
      (e) => {
        const text = !e.ctrlKey && e.key.length === 1 && (e.target as HTMLElement).matches('textarea, select, input');
        if (!text && !['Control', 'Shift', 'Alt', 'Meta'].includes(e.key)) act('key');
      },
      true,
    );
    addEventListener(
      'input',
      (e) => {
        if (field === e.target) return;
        count('field');
        field = e.target;
      },
      true,
    );
    let before = '';
    addEventListener(
      'keydown',
      (e) => {
        const name = e.ctrlKey ? `Ctrl ${e.key}` : e.key;
        if (
          e.altKey ||
          e.metaKey ||
          (!e.ctrlKey &&
            (e.target as HTMLElement).matches('textarea, select, input:not([type=radio]):not([type=checkbox])'))
        )
          return;
        const dialog = [...document.querySelectorAll<HTMLElement>('dialog[open]')].at(-1)?.dataset.keys;
        const where = dialog ?? location.pathname.split('/').slice(1, 3).join('/');
        // What the page has taken is known when all have heard of it: this one is the last, unless
        // the page lets no other hear. A page that goes at once has told it before.
        let noted = false;
        const note = () => {
          if (noted) return;
          noted = true;
          if (e.defaultPrevented)
            void (window as unknown as { pressed(what: string): void }).pressed(
              `${where}\t${before === 'g' ? `g ${name}` : name}`,
            );
          before = e.defaultPrevented ? '' : e.key;
        };
        addEventListener('keydown', note, { once: true });
        setTimeout(note);
      },
      true,
    );
  });
  return context;
}

/** acts are what a person did on a page since it was asked last: clicks, keys that are no text, and fields that were filled or chosen. */
export const acts = (page: Page) =>
  page.evaluate(() => {
    const n = JSON.parse(sessionStorage.getItem('acts') ?? '{}') as Record<string, number>;
    sessionStorage.removeItem('acts');
    return ['click', 'key', 'field']
      .flatMap((what) => (n[what] ? [`${n[what]} ${what}${n[what] === 1 ? '' : 's'}`] : []))
      .join(', ');
  });

/** told are the acts of stories, by their names: on a wide screen, and on a phone. */
export const told = new Map<string, [string, string]>();
/** tell keeps what a story took. */
export async function tell(page: Page, story: string, small: boolean): Promise<void> {
  const row = told.get(story) ?? (['', ''] as [string, string]);
  row[small ? 1 : 0] = await acts(page);
  told.set(story, row);
}

/** named are keys as they are shown, and as the browser names them. */
export const named: Record<string, string> = {
  Space: ' ',
  Esc: 'Escape',
  Del: 'Delete',
  '↓': 'ArrowDown',
  '↑': 'ArrowUp',
  '←': 'ArrowLeft',
  '→': 'ArrowRight',
};

/** help opens the keys by ?, and notes which it shows. */
export async function help(page: Page): Promise<void> {
  await page.keyboard.press('?');
  const dialog = page.getByRole('dialog', { name: 'Keys of this page' });
  await dialog.waitFor();
  const where = await page.evaluate(
    () =>
      [...document.querySelectorAll<HTMLElement>('dialog[open]')].at(-2)?.dataset.keys ??
      location.pathname.split('/').slice(1, 3).join('/'),
  );
  const rows = await dialog.locator('section').evaluateAll((sections) =>
    sections.flatMap((s) =>
      [...s.querySelectorAll('dt')].flatMap((dt) => {
        const keys: string[][] = [[]];
        for (const part of dt.children) {
          if (part.tagName === 'KBD') keys.at(-1)!.push(part.textContent);
          else keys.push([]);
        }
        return keys.map((k) => [s.querySelector('h3')!.textContent, k] as [string, string[]]);
      }),
    ),
  );
  assert.ok(rows.length > 0);
  for (const [group, keys] of rows) listed.add([group, where, keys.map((k) => named[k] ?? k).join(' ')].join('\t'));
  await page.keyboard.press('?');
  await dialog.waitFor({ state: 'detached' });
}

export { api };

/**
 * until asks the server until its answer fits, for a minute at most. (A function
 * that is async is true at once for page.waitForFunction, whatever it returns.)
 */
export async function until<T>(page: Page, path: string, fits: (answer: T) => boolean): Promise<T> {
  const end = Date.now() + 60_000;
  for (;;) {
    const answer = (await api(page, path)) as T;
    if (fits(answer)) return answer;
    assert.ok(
      Date.now() < end,
      `${path} does not come to what is waited for: ${JSON.stringify(answer).slice(0, 3000)}`,
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** happened waits until the journal of a run has so many events of a kind. */
export const happened = (page: Page, run: string | undefined, kind: string, many = 1) =>
  page.evaluate(
    ([run, kind, many]) =>
      new Promise<void>((resolve) => {
        let n = 0;
        const s = new EventSource(`/api/v1/events?run=${run}&after=0-0&key=${localStorage.getItem('pawl.key')}`);
        s.addEventListener('journal', (e) => {
          if ((JSON.parse((e as MessageEvent<string>).data) as { kind: string }).kind !== kind || ++n < many) return;
          s.close();
          resolve();
        });
      }),
    [run, kind, many] as const,
  );

/** dialogs waits until so many dialogs are open: what was sent off by one is done when it is gone. */
export const dialogs = (page: Page, many: number) =>
  page.waitForFunction((n) => document.querySelectorAll('dialog[open]').length === n, many);

/** viewer is a browser that has been let in. */
export async function viewer(width: number, scheme: 'light' | 'dark' = 'light'): Promise<BrowserContext> {
  return entered(p.url, width, scheme);
}

/** stranger is a browser that has not been let in. */
export async function stranger(): Promise<BrowserContext> {
  const context = await noted(await browser.newContext({ viewport: { width: 1280, height: 860 } }));
  context.setDefaultTimeout(60_000);
  return context;
}

/** entered is a browser that has been let in by a server of one's own. */
export async function entered(url: string, width: number, scheme: 'light' | 'dark' = 'light'): Promise<BrowserContext> {
  const context = await noted(
    await browser.newContext({ viewport: { width, height: 860 }, colorScheme: scheme, reducedMotion: 'reduce' }),
  );
  context.setDefaultTimeout(60_000);
  // The cookie that the entry sets is the browser's; the key is in the address that it leads to.
  const entry = await context.request.get(url, { maxRedirects: 0 });
  const to = new URL(entry.headers().location!, url);
  await context.addInitScript(
    ([origin, key]) => {
      if (location.origin === origin) localStorage.setItem('pawl.key', key!);
    },
    [to.origin, to.hash.replace('#key=', '')],
  );
  return context;
}

/** quiet fails when the page logs an error, such as a breach of its policy, or the pages' framework warns. */
export function quiet(page: Page): string[] {
  const wrong: string[] = [];
  page.on(
    'console',
    (m) => (m.type() === 'error' || m.text().includes('svelte.dev')) && wrong.push(`${m.text()} ${m.location().url}`),
  );
  page.on('pageerror', (e) => wrong.push(e.message));
  page.on('dialog', (d) => {
    wrong.push(`a dialog: ${d.message()}`);
    void d.dismiss();
  });
  return wrong;
}

/** violations are what axe finds; of colours alone, when the rest was looked at in others. */
export async function violations(page: Page, colours = false): Promise<string[]> {
  // The policy forbids scripts of others; the browser's own door is not held by it.
  await page.evaluate(axe);
  // What the edge of a region that scrolls cuts is no target that is too small.
  await page.evaluate(() =>
    document.querySelectorAll<HTMLElement>('[role=log]').forEach((e) => (e.style.height = 'auto')),
  );
  return page.evaluate(
    async (runOnly) => {
      const { axe } = window as unknown as {
        axe: {
          run(
            o: object,
          ): Promise<{ violations: { id: string; nodes: { target: unknown[]; failureSummary?: string }[] }[] }>;
        };
      };
      const found = await axe.run({ runOnly });
      return found.violations.map(
        (v) =>
          `${v.id}: ${v.nodes
            .slice(0, 3)
            .map((n) => `${n.target.join(' ')} ${n.failureSummary ?? ''}`)
            .join('; ')}`,
      );
    },
    colours
      ? { type: 'rule', values: ['color-contrast', 'link-in-text-block'] }
      : { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] },
  );
}
