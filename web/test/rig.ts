// One project, one server and one browser for all browser tests, which run one
// after the other.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { after, before } from 'node:test';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { fill, make, type Project } from './project';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export let p: Project;
let browser: Browser;
export const runs: Record<string, string> = {};

before(async () => {
  p = await make(process.env.PAWL ?? 'pawl');
  fill(p);
  p.run('run', 'hostile', '-q');
  p.begin('run', 'slow-import', '-q');
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage'] });
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

/** launched is the browser, for tests with a server of their own. */
export const launched = () => browser;

export const at = (path: string) => new URL(path, p.url).href;
export const api = (page: Page, path: string) => page.evaluate(async (path) => (await fetch(path)).json(), path);

/** viewer is a browser that has been let in. */
export async function viewer(width: number, scheme: 'light' | 'dark' = 'light'): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width, height: 860 }, colorScheme: scheme, reducedMotion: 'reduce' });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  await page.goto(p.url);
  await page.close();
  return context;
}

/** quiet fails when the page logs an error, such as a breach of its policy. */
export function quiet(page: Page): string[] {
  const wrong: string[] = [];
  page.on('console', (m) => m.type() === 'error' && wrong.push(m.text()));
  page.on('pageerror', (e) => wrong.push(e.message));
  page.on('dialog', (d) => {
    wrong.push(`a dialog: ${d.message()}`);
    void d.dismiss();
  });
  return wrong;
}

export async function violations(page: Page): Promise<string[]> {
  // The policy forbids scripts of others; the browser's own door is not held by it.
  await page.evaluate(axe);
  // What the edge of a region that scrolls cuts is no target that is too small.
  await page.evaluate(() => document.querySelectorAll<HTMLElement>('[role=log]').forEach((e) => (e.style.height = 'auto')));
  return page.evaluate(async () => {
    const run = (window as unknown as { axe: { run(o: object): Promise<{ violations: { id: string; nodes: { target: unknown[]; failureSummary?: string }[] }[] }> } }).axe.run;
    const found = await run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] });
    return found.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target.join(' ')} ${n.failureSummary ?? ''}`).join('; ')}`);
  });
}
