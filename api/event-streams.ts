import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../contracts/api/auth.js';
import type { StreamClosed, StreamEventsRequest } from '../contracts/api/telemetry.js';
import { LIMITS } from '../contracts/limits.js';
import { isLimited } from '../contracts/permissions.js';
import { cursorAfter, newestCursor } from '../telemetry/event-cursor.js';
import { passes } from '../telemetry/event-filter.js';
import { EventOwners } from '../telemetry/event-owners.js';
import type { ApiDeps } from './deps.js';
import { OpenCalls, TokenWatch } from './open-calls.js';
import { callerOf } from './plugins/authentication.js';
import { logFailure, toPlatformError } from './plugins/error-contract.js';
import { EventStream, responseSignal } from './send/event-stream.js';

/** Reasons for which the platform ends a stream. */
const REASONS: Record<StreamClosed['code'], string> = {
  BACKPRESSURE: 'The reader is too slow. Continue with last_event_id.',
  unauthorized: 'The access token has ended, and the stream with it. Continue with last_event_id and a new token.',
  SERVICE_UNAVAILABLE: 'The stream broke. Continue with last_event_id.',
};

type Deps = Pick<ApiDeps, 'db' | 'eventFeed' | 'authenticator' | 'draining' | 'clocks'> & { openCalls: OpenCalls };

/** `/telemetry/stream_events`: the events of the caller's tenant as server-sent events, from now on or after an event that the reader names. */
export class EventStreams {
  readonly #deps: Deps;
  readonly #tokens: TokenWatch;
  readonly #owners: EventOwners;
  /** Each event stream may hold a megabyte of what its reader has not taken yet. */
  readonly #open = new OpenCalls({
    perToken: LIMITS.eventStreamsPerTenant,
    perTenant: LIMITS.eventStreamsPerTenant,
    inAll: LIMITS.eventStreamsPerNode,
  });

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#owners = new EventOwners(deps.db);
    this.#tokens = new TokenWatch(deps.authenticator, deps.clocks);
  }

  /**
   * Answers with a stream; resolves to the reply when it has ended.
   * @throws PlatformError RATE_LIMITED at a limit of streams; NOT_FOUND for an unknown `last_event_id`
   */
  async answer(request: FastifyRequest, reply: FastifyReply, asked: StreamEventsRequest): Promise<FastifyReply> {
    const caller = callerOf(request);
    const { tenant_id } = caller;
    const leave = this.#enter(request.accessToken, caller);
    try {
      const { last_event_id: named, ...filters } = asked;
      const header = request.headers['last-event-id'];
      const lastEventId = typeof header === 'string' && header !== '' ? header : named;
      const { db } = this.#deps;
      const after = await (lastEventId === undefined ? newestCursor(db) : cursorAfter(db, tenant_id, lastEventId));
      reply.hijack();
      await this.#send(request, reply, { caller, after, lastEventId, filters });
      return reply;
    } finally {
      leave();
    }
  }

  async #send(
    request: FastifyRequest,
    reply: FastifyReply,
    wanted: {
      caller: Caller;
      after: number;
      lastEventId: string | undefined;
      filters: Omit<StreamEventsRequest, 'last_event_id'>;
    },
  ): Promise<void> {
    const { caller, after, filters } = wanted;
    let lastEventId = wanted.lastEventId;
    let code: StreamClosed['code'] | undefined;
    const ending = new AbortController();
    const endWith = (reason: StreamClosed['code']) => {
      code ??= reason;
      ending.abort();
    };
    const signal = responseSignal(reply.raw, this.#deps.draining, ending.signal);
    const unwatch = this.#tokens.watch(request.accessToken, () => endWith('unauthorized'));
    const stream = new EventStream(reply.raw, request.id);
    try {
      const accepts = passes.bind(null, filters);
      const onTooSlow = () => endWith('BACKPRESSURE');
      for await (const { event, frame } of this.#deps.eventFeed.follow({
        tenantId: caller.tenant_id,
        visible: (events) => this.#owners.visible(caller, events),
        after,
        accepts,
        onTooSlow,
        signal,
      })) {
        lastEventId = event.record.event_id; // written, even if the reader has not read it yet
        await stream.sendFrame(frame, signal);
      }
    } catch (error) {
      if (!signal.aborted) {
        logFailure(request, toPlatformError(error));
        code = 'SERVICE_UNAVAILABLE';
      }
    } finally {
      unwatch();
      stream.endWith(code && closingFrame(code, lastEventId));
    }
  }

  /** Counts a stream. @returns no longer counts it */
  #enter(token: string, caller: Caller): () => void {
    const leaveAll = this.#deps.openCalls.enter(token, caller);
    try {
      const leave = this.#open.enter(token, caller, isLimited(caller) ? LIMITS.eventStreamsPerLimitedToken : undefined);
      return () => {
        leave();
        leaveAll();
      };
    } catch (error) {
      leaveAll();
      throw error;
    }
  }
}

function closingFrame(code: StreamClosed['code'], lastEventId: string | undefined): string {
  const closed: StreamClosed = { code, error: REASONS[code], ...(lastEventId && { last_event_id: lastEventId }) };
  return `event: stream.closed\ndata: ${JSON.stringify(closed)}\n\n`;
}
