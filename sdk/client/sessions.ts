import type { z } from 'zod';
import {
  SessionCloseResponse,
  type SessionDetails,
  SessionGetByIdResponse,
  type SessionInitRequest,
  SessionInitResponse,
  type SessionInviteRequest,
  SessionInviteResponse,
  type SessionsGetRequest,
  SessionsGetResponse,
  SessionsInterruptResponse,
} from '../../contracts/api/sessions.js';
import type { CallOptions, PlatformApi } from './platform-api.js';

/** `/sessions/*` (specification section 4). */
export class Sessions {
  readonly #api: PlatformApi;

  constructor(api: PlatformApi) {
    this.#api = api;
  }

  /** Opens a session. Without an instance or type the first message is routed. Not retried, because each call opens another session. */
  init(request: Partial<SessionInitRequest> = {}, options: CallOptions = {}) {
    return this.#api.post('/sessions/init', request, SessionInitResponse, options);
  }

  /** One page of the tenant's sessions, newest first. */
  get(request: Partial<z.infer<typeof SessionsGetRequest>> = {}, options: CallOptions = {}) {
    return this.#api.post('/sessions/get', request, SessionsGetResponse, { ...options, retry: true });
  }

  async getById(sessionId: string, options: CallOptions = {}): Promise<SessionDetails> {
    const body = { session_id: sessionId };
    const answer = await this.#api.post('/sessions/get_by_id', body, SessionGetByIdResponse, {
      ...options,
      retry: true,
    });
    return answer.session;
  }

  /** Closes a session and cancels its in-flight work. @throws ApiError with `SESSION_CLOSED` when it is closed already */
  close(sessionId: string, options: CallOptions & { reason?: string } = {}) {
    const { reason, ...rest } = options;
    const body = { session_id: sessionId, ...(reason !== undefined && { reason }) };
    return this.#api.post('/sessions/close', body, SessionCloseResponse, rest);
  }

  /** Cancels the in-flight work of sessions, which stay open. */
  interrupt(sessionIds: string | string[], options: CallOptions = {}) {
    const body = { ids: [sessionIds].flat() };
    return this.#api.post('/sessions/interrupt', body, SessionsInterruptResponse, options);
  }

  /** Adds an agent to a session: the given instance, or the least loaded one of the given type. */
  async invite(
    sessionId: string,
    agent: Omit<z.input<typeof SessionInviteRequest>, 'session_id'>,
    options: CallOptions = {},
  ) {
    const body = { session_id: sessionId, ...agent };
    return (await this.#api.post('/sessions/invite', body, SessionInviteResponse, options)).agent;
  }
}
