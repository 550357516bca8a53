// What a page of somebody else's can do to the server, in a real browser. The
// rules themselves are tested one by one in internal/ask/web/guard_test.go.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { api, at, p, stranger, viewer } from './rig';

test('the token is in no address, and its cookie in no script', async () => {
  const context = await stranger();
  const page = await context.newPage();
  await page.goto(p.url);
  await page.getByText('Live', { exact: true }).waitFor();
  const token = new URL(p.url).searchParams.get('token')!;
  assert.ok(!page.url().includes('token'), page.url());
  assert.ok(!page.url().includes('key'), page.url());
  assert.equal(await page.evaluate(() => document.cookie), '');
  assert.ok(
    !(
      await page.evaluate(() =>
        JSON.stringify([
          performance.getEntriesByType('resource').map((e) => e.name),
          { ...localStorage },
          { ...sessionStorage },
          document.documentElement.outerHTML,
        ]),
      )
    ).includes(token),
  );
  const [cookie] = (await context.cookies()).filter((c) => c.name.startsWith('pawl_'));
  assert.equal(cookie!.httpOnly, true);
  assert.equal(cookie!.sameSite, 'Strict');
  assert.equal(cookie!.expires, -1);
  assert.notEqual(cookie!.value, token);
  // The page of another port gets the cookie, and nothing for it; the key it cannot read.
  const site = createServer((req, res) =>
    res.setHeader('Content-Type', 'text/html').end(`<!doctype html><title>${req.headers.cookie ?? ''}</title>`),
  ).listen(0, '127.0.0.1');
  await new Promise((resolve) => site.once('listening', resolve));
  const other = await context.newPage();
  await other.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
  const got = await other.title();
  assert.ok(got.includes(cookie!.value), got);
  assert.equal(await other.evaluate(() => localStorage.length), 0);
  site.close();
  const ask = (headers: Record<string, string>) =>
    fetch(at('/api/v1/overview'), { headers: { cookie: got, ...headers } });
  assert.equal((await ask({})).status, 401);
  const key = await page.evaluate(() => localStorage.getItem('pawl.key')!);
  assert.equal((await ask({ 'X-Pawl-Key': key })).status, 200);
  // A browser that has lost the key is told how to come in again.
  await page.evaluate(() => localStorage.clear());
  await page.goto(at('/board'));
  await page
    .getByText(/Open the address that 'pawl serve --url' prints/)
    .first()
    .waitFor();
  // Who was not let in sees how to be, and nothing else.
  await context.clearCookies();
  await page.goto(at('/board'));
  await page.getByText('This browser is not known to pawl').waitFor();
  await context.close();
});

test('another program on this machine, and a name that points here, get nothing and do nothing', async () => {
  const titles = async () => {
    const own = await viewer(1280);
    const page = await own.newPage();
    await page.goto(at('/config'));
    const cases = ((await api(page, '/api/v1/cases?limit=1000')) as { cases: { title: string }[] }).cases.map(
      (c) => c.title,
    );
    await own.close();
    return cases;
  };
  const before = await titles();
  // For cookies a port is no other site: SameSite keeps nothing back here.
  const site = createServer((_, res) =>
    res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>other</title>'),
  ).listen(0, '127.0.0.1');
  await new Promise((resolve) => site.once('listening', resolve));
  const context = await viewer(1280);
  try {
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
    assert.equal(await page.evaluate(() => document.cookie), '');
    const form = page.waitForResponse((r) => r.request().method() === 'POST' && r.request().isNavigationRequest());
    const found = await page.evaluate(
      async (to) => {
        const out: Record<string, unknown> = {};
        const body = '{"title":"owned"}';
        const gone = (work: Promise<unknown>) =>
          work.then(
            () => 'answered',
            () => 'refused',
          );
        const cases = to + '/api/v1/cases';
        out.json = await gone(
          fetch(cases, {
            method: 'POST',
            credentials: 'include',
            headers: { 'Content-Type': 'application/json' },
            body,
          }),
        );
        out.plain = await gone(
          fetch(cases, {
            method: 'POST',
            mode: 'no-cors',
            credentials: 'include',
            headers: { 'Content-Type': 'text/plain' },
            body,
          }),
        );
        out.beacon = navigator.sendBeacon(cases, new Blob([body], { type: 'text/plain' }));
        out.read = await gone(fetch(cases, { credentials: 'include' }));
        out.page = await gone(fetch(to + '/', { credentials: 'include' }));
        const load = (tag: 'script' | 'img' | 'link', url: string) =>
          new Promise((resolve) => {
            const e = document.createElement(tag);
            e.onload = () => resolve('loaded');
            e.onerror = () => resolve('refused');
            if (tag === 'link') Object.assign(e, { rel: 'stylesheet', href: url });
            else Object.assign(e, { src: url });
            document.body.append(e);
          });
        out.script = await load('script', cases);
        out.theme = await load('script', to + '/theme.js');
        out.img = await load('img', to + '/icon.svg');
        out.style = await load('link', to + '/theme.js');
        out.events = await new Promise((resolve) => {
          const s = new EventSource(to + '/api/v1/events', { withCredentials: true });
          s.onerror = () => (s.close(), resolve('refused'));
          s.addEventListener('hello', () => resolve('heard'));
        });
        const frame = document.createElement('iframe');
        const shown = new Promise((resolve) => (frame.onload = resolve));
        frame.src = to + '/';
        document.body.append(frame);
        await shown;
        out.frame = (() => {
          try {
            return frame.contentDocument?.title ?? 'out of reach';
          } catch {
            return 'out of reach';
          }
        })();
        const form = Object.assign(document.createElement('form'), {
          method: 'post',
          action: cases,
          enctype: 'text/plain',
          target: 'sink',
        });
        const sink = Object.assign(document.createElement('iframe'), { name: 'sink' });
        const field = Object.assign(document.createElement('input'), { name: '{"title":"owned","x":"', value: '"}' });
        form.append(field);
        document.body.append(sink, form);
        form.submit();
        return out;
      },
      at('/').replace(/\/$/, ''),
    );
    assert.deepEqual(found, {
      json: 'refused',
      plain: 'refused',
      beacon: true,
      read: 'refused',
      page: 'refused',
      script: 'refused',
      theme: 'refused',
      img: 'refused',
      style: 'refused',
      events: 'refused',
      frame: 'out of reach',
    });
    assert.equal((await form).status(), 403);
    // A name of the attacker's that points at this machine is of no use, with the token too.
    const answer = await page.goto(p.url.replace('127.0.0.1', 'attacker.example'));
    assert.equal(answer!.status(), 421);
    assert.equal((await context.cookies('http://attacker.example')).length, 0);
  } finally {
    await context.close();
    site.close();
  }
  assert.deepEqual(await titles(), before);
});
