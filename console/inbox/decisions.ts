import type { QueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import type { ResolveRequest } from '../../contracts/api/messages.js';
import type { RequestRecord } from '../../contracts/api/policies/requests.js';
import { ApiError, call, postJson } from '../api/call.js';
import { requestQuery, subjectOf } from '../api/requests.js';

/** What somebody decides about one request. */
export type Answer = Pick<ResolveRequest, 'comment' | 'arguments' | 'data'> & { resolution: string };

/** An answer on its way. `waiting`: it can be undone. `refused`: nothing was decided by it, and it is kept. */
export interface Decision {
  request: RequestRecord;
  answer: Answer;
  state: 'waiting' | 'sending' | 'sent' | 'refused';
  /** Why it was refused. */
  error?: ApiError;
}

/** How long a decision can be undone. */
const UNDO_MS = 5_000;
/** `/requests/resolve_many` takes so many. */
const TOGETHER_MAX = 200;

/** The decisions that were made in this tab. They outlive the view, so that leaving it loses none. */
class Decisions {
  #all: ReadonlyMap<string, Decision> = new Map();
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();
  readonly #listeners = new Set<() => void>();
  client: QueryClient | undefined;

  readonly subscribe = (listener: () => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  readonly snapshot = () => this.#all;

  #set(id: string, decision: Decision | null): void {
    const next = new Map(this.#all);
    if (decision) next.set(id, decision);
    else next.delete(id);
    this.#all = next;
    for (const listener of this.#listeners) listener();
  }

  /** Sends an answer after the time in which it can be undone. */
  decide(request: RequestRecord, answer: Answer): void {
    const id = request.request_id;
    clearTimeout(this.#timers.get(id));
    this.#set(id, { request, answer, state: 'waiting' });
    this.#timers.set(
      id,
      setTimeout(() => void this.#send(id), UNDO_MS),
    );
  }

  /** Takes back the newest answer that is not sent yet. @returns its request */
  undo(): RequestRecord | undefined {
    const newest = [...this.#all.values()].findLast(({ state }) => state === 'waiting');
    if (newest) this.#drop(newest.request.request_id);
    return newest?.request;
  }

  /** Sends an answer that was refused for a passing reason again. */
  retry(id: string): void {
    void this.#send(id);
  }

  /** Forgets what is over. */
  clear(): void {
    for (const [id, { state }] of this.#all) if (state === 'sent' || state === 'refused') this.#set(id, null);
  }

  /** Sends what still waits at once: the page is about to go, or who is signed in. */
  async flush(): Promise<void> {
    const waiting = [...this.#all].filter(([, { state }]) => state === 'waiting');
    await Promise.all(waiting.map(([id]) => this.#send(id, true)));
  }

  /** Gives many requests the same answer. */
  async decideMany(requests: readonly RequestRecord[], resolution: string, comment: string): Promise<void> {
    const answer = { resolution, ...(comment !== '' && { comment }) };
    for (const request of requests) this.#set(request.request_id, { request, answer, state: 'sending' });
    for (let from = 0; from < requests.length; from += TOGETHER_MAX) {
      const part = requests.slice(from, from + TOGETHER_MAX);
      const request_ids = part.map(({ request_id }) => request_id);
      const results = await call('/requests/resolve_many', { request_ids, ...answer }).then(
        (answered) => answered.results,
        (error: unknown) => request_ids.map((request_id) => ({ request_id, ok: false, code: codeOf(error) })),
      );
      for (const [index, { ok, code = 'INTERNAL_ERROR' }] of results.entries()) {
        const request = part[index];
        if (!request) continue;
        if (ok) await this.#done(request, answer);
        else await this.#refused(request, answer, new ApiError(0, code, `It was not decided: ${code}.`));
      }
    }
  }

  #drop(id: string): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    this.#set(id, null);
  }

  async #send(id: string, keepalive = false): Promise<void> {
    const decision = this.#all.get(id);
    if (!decision || decision.state === 'sending' || decision.state === 'sent') return;
    clearTimeout(this.#timers.get(id));
    const { request, answer } = decision;
    this.#set(id, { request, answer, state: 'sending' });
    try {
      await postJson(resolvePath(request), resolveBody(request, answer), keepalive);
      await this.#done(request, answer);
    } catch (error) {
      await this.#refused(request, answer, error instanceof ApiError ? error : new ApiError(0, 'AWAY', String(error)));
    }
  }

  async #done(request: RequestRecord, answer: Answer): Promise<void> {
    this.#set(request.request_id, { request, answer, state: 'sent' });
    await this.#readAnew(request);
  }

  async #refused(request: RequestRecord, answer: Answer, error: ApiError): Promise<void> {
    this.#set(request.request_id, { request, answer, state: 'refused', error });
    await this.#readAnew(request);
  }

  #readAnew({ request_id }: RequestRecord): Promise<void> | undefined {
    return this.client?.invalidateQueries({ queryKey: requestQuery(request_id).queryKey });
  }
}

const codeOf = (error: unknown) => (error instanceof ApiError ? error.code : 'INTERNAL_ERROR');

/** Where an answer goes. */
export const resolvePath = (request: RequestRecord): string => `/messages/${subjectOf(request)}/resolve`;

/** The body of an answer. The digest has it refused if the request is not what was seen any more. */
export function resolveBody({ request_id, input_request: { digest } }: RequestRecord, answer: Answer): ResolveRequest {
  return { ...answer, request_id, ...(digest !== undefined && { digest }) };
}

/** Whether an answer was refused for something that may pass. */
export function isPassing({ status, code }: ApiError): boolean {
  return code === 'AWAY' || status === 401 || status === 429 || status >= 500;
}

export const decisions = new Decisions();

/** All decisions of this tab, by request. */
export function useDecisions(): ReadonlyMap<string, Decision> {
  return useSyncExternalStore(decisions.subscribe, decisions.snapshot);
}

/** What was typed and not sent yet, by request: neither another selection nor somebody else's decision loses it. */
export const drafts = new Map<string, { comment?: string; arguments?: string; form?: Record<string, string> }>();
