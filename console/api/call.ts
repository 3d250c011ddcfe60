import type { z } from 'zod';
import type { OPERATIONS } from '../../contracts/api/operations.js';
import { keepAhead, takeAhead } from './ahead.js';

type Operations = typeof OPERATIONS;
/** The operations that are a POST of JSON, by their paths. Only types are taken from the contracts, so that zod is not in the page. */
type Posts = {
  [Name in keyof Operations as Operations[Name] extends { method: 'POST'; request: z.ZodType }
    ? Operations[Name]['path']
    : never]: Extract<Operations[Name], { request: z.ZodType }>;
};
type Path = keyof Posts & string;
export type BodyOf<Of extends Path> = z.input<Posts[Of]['request']>;
export type AnswerOf<Of extends Path> = z.output<Posts[Of]['response']>;

/** An answer of the API that is not 200, or no answer (`AWAY`). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** Whether nobody is signed in any more. */
export const isSignedOut = (error: unknown): boolean => error instanceof ApiError && error.status === 401;

/**
 * What changes have to repeat beside the cookie of the session: no other page can read it. Where there is one that only this host can have set,
 * it counts: another host of the domain may have set the other.
 */
function csrfToken(): string {
  const cookies = new Map(document.cookie.split('; ').map((cookie) => cookie.split('=', 2) as [string, string]));
  return cookies.get('__Host-fleet_csrf') ?? cookies.get('fleet_csrf') ?? '';
}

/** Whether somebody may be signed in; only the platform knows. */
export const mayBeSignedIn = (): boolean => csrfToken() !== '';

/** The response to a request, if it is a good one. @throws ApiError */
async function fetchGood(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(path, { cache: 'no-store', credentials: 'same-origin', ...init }).catch(() => {
    throw new ApiError(0, 'AWAY', 'The platform cannot be reached.');
  });
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => null);
  const { code = 'INTERNAL_ERROR', error = `The platform answered ${response.status}.` } = (body ?? {}) as {
    code?: string;
    error?: string;
  };
  throw new ApiError(response.status, code, error);
}

/** What is asked for: with the body that is posted. */
const askedFor = (path: string, { body }: RequestInit) => (body === undefined ? path : `${path} ${body}`);

/** The answer to a request, of which only the status and the error body are checked. @throws ApiError */
export async function fetchJson(path: string, init: RequestInit = {}): Promise<unknown> {
  const answer = takeAhead(askedFor(path, init));
  if (answer !== undefined) return answer;
  const response = await fetchGood(path, init);
  return response.json().catch(() => null);
}

/** Asks for what the page is about to ask for. @throws ApiError */
export function fetchAhead(path: string, body?: unknown): Promise<unknown> {
  const init = body === undefined ? {} : posted(body);
  const answer = fetchJson(path, init);
  keepAhead(askedFor(path, init), answer);
  return answer;
}

function posted(body: unknown): RequestInit {
  const headers = { 'content-type': 'application/json', 'x-csrf-token': csrfToken() };
  return { method: 'POST', headers, body: JSON.stringify(body) };
}

/** Posts JSON with the session's CSRF token. @param keepalive the request outlives the page */
export function postJson(path: string, body: unknown, keepalive = false): Promise<unknown> {
  return fetchJson(path, { ...posted(body), keepalive });
}

/** Posts JSON for an answer that is read as it comes. @throws ApiError */
export function postForStream(path: string, body: unknown): Promise<Response> {
  return fetchGood(path, posted(body));
}

/** Calls a documented operation. @throws ApiError */
export function call<Of extends Path>(path: Of, body: BodyOf<Of>): Promise<AnswerOf<Of>> {
  return postJson(path, body) as Promise<AnswerOf<Of>>;
}

/** A call as a line of shell, with the token in a variable. */
export function asCurl(path: string, body: unknown): string {
  const json = JSON.stringify(body).replaceAll("'", "'\\''");
  return `curl -s ${location.origin}${path} -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '${json}'`;
}
