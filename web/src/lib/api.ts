// The API, typed by its own description (schema.d.ts is generated from it).

import { inBrowser } from './format';
import type { components, paths } from './schema';
import { key } from './session';

type Schemas = components['schemas'];
export type Run = Schemas['Run'];
export type RunDetail = Schemas['RunDetail'];
export type Question = Schemas['Question'];
export type Iteration = Schemas['Iteration'];
export type Current = Schemas['Current'];
export type Gate = Schemas['Gate'];
export type GateSpec = Schemas['GateSpec'];
export type Activity = Schemas['Activity'];
export type AgentEvent = Schemas['AgentEvent'];
export type Case = Schemas['Case'];
export type CaseDetail = Schemas['CaseDetail'];
export type Overview = Schemas['Overview'];
export type Need = Schemas['Need'];
export type Repository = Schemas['Repository'];
export type Diff = Schemas['Diff'];
export type DiffFile = Schemas['DiffFile'];
export type FileDiff = Schemas['FileDiff'];
export type Snapshot = Schemas['Snapshot'];
export type Done = Schemas['Done'];

type Method = 'get' | 'post' | 'patch' | 'delete';
type Op<P extends keyof paths, M extends Method> = Exclude<paths[P][M], undefined>;
type Answer<P extends keyof paths, M extends Method> =
  Op<P, M> extends { responses: { 200: { content: { 'application/json': infer A } } } } ? A : never;
type Body<P extends keyof paths, M extends Method> =
  Op<P, M> extends { requestBody: { content: { 'application/json': infer B } } } ? B : undefined;
type Query<P extends keyof paths, M extends Method> =
  Op<P, M> extends { parameters: { query?: infer Q } } ? Q : undefined;
type Names<P extends keyof paths, M extends Method> =
  Op<P, M> extends { parameters: { path: infer N } } ? N : undefined;

/** Can are the addresses that take a method. */
type Can<M extends Method> = { [P in keyof paths]: paths[P][M] extends undefined ? never : P }[keyof paths];

/** Problem is an error of the API, or that the server cannot be reached. */
export class Problem extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly severity: 'low' | 'medium' | 'high' | 'critical' = 'medium',
    readonly details: string[] = [],
    readonly suggestions: string[] = [],
    readonly status = 0,
  ) {
    super(message);
  }
}

/** explain makes a problem of whatever was thrown. */
export function explain(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown;
  return new Problem(
    'PAGE',
    `Something in this page failed: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    'high',
    [],
    ['Reload the page: everything stored is safe'],
  );
}

interface Sent {
  path?: object | undefined;
  query?: object | undefined;
  body?: unknown;
  signal?: AbortSignal | undefined;
}

/** address fills the names of an address in. */
export function address(path: string, names: object = {}, query: object = {}): string {
  let url = path;
  for (const [name, value] of Object.entries(names)) url = url.replace(`{${name}}`, encodeURIComponent(String(value)));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === '' || value === false) continue;
    search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `${url}?${text}` : url;
}

async function send(method: string, path: string, sent: Sent): Promise<unknown> {
  const init: RequestInit = { method, credentials: 'same-origin', headers: { 'X-Pawl-Key': key() } };
  if (sent.signal) init.signal = sent.signal;
  if (method !== 'GET') {
    init.headers = { 'X-Pawl-Key': key(), 'Content-Type': 'application/json' };
    init.body = JSON.stringify(sent.body ?? {});
  }
  let response: Response;
  try {
    response = await fetch(address(path, sent.path, sent.query), init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Problem(
      'UNREACHABLE',
      'The server of pawl cannot be reached. It may have been stopped: start it again with pawl serve.',
      'medium',
    );
  }
  const text = await response.text();
  let value: unknown;
  try {
    value = text === '' ? {} : JSON.parse(text);
  } catch {
    throw new Problem(
      'NO_JSON',
      `The server answered with status ${response.status} and no JSON.`,
      'high',
      [],
      ['Something between this page and pawl may have answered: reload the page'],
      response.status,
    );
  }
  if (!response.ok) throw problem(value, response.status);
  return value;
}

function problem(value: unknown, status: number): Problem {
  const e = (value as { error?: Partial<Schemas['Details']> }).error ?? {};
  const [first, ...more] = e.message?.split('\n') ?? [];
  return new Problem(
    e.code ?? 'ERROR',
    first ? [first, ...inBrowser(more)].join(' ') : `The server answered with status ${status}.`,
    e.severity ?? 'medium',
    e.details ?? [],
    e.suggestions ?? [],
    status,
  );
}

type Options<P extends keyof paths, M extends Method> = (Names<P, M> extends undefined
  ? { path?: undefined }
  : { path: Names<P, M> }) & {
  query?: Query<P, M>;
  signal?: AbortSignal | undefined;
};

/** get asks; the answer's type is that of the address. */
export function get<P extends Can<'get'>>(path: P, options: Options<P, 'get'>): Promise<Answer<P, 'get'>> {
  return send('GET', path, options as Sent) as Promise<Answer<P, 'get'>>;
}

/** post does. */
export function post<P extends Can<'post'>>(
  path: P,
  options: Options<P, 'post'> & { body: Body<P, 'post'> },
): Promise<Answer<P, 'post'>> {
  return send('POST', path, options as Sent) as Promise<Answer<P, 'post'>>;
}

/** patch changes. */
export function patch<P extends Can<'patch'>>(
  path: P,
  options: Options<P, 'patch'> & { body: Body<P, 'patch'> },
): Promise<Answer<P, 'patch'>> {
  return send('PATCH', path, options as Sent) as Promise<Answer<P, 'patch'>>;
}

/** remove deletes. */
export function remove<P extends Can<'delete'>>(path: P, options: Options<P, 'delete'>): Promise<Answer<P, 'delete'>> {
  return send('DELETE', path, options as Sent) as Promise<Answer<P, 'delete'>>;
}
