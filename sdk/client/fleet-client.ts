import { randomUUID } from 'node:crypto';
import { type StreamEvent, Task } from '../../contracts/a2a.js';
import type { Part } from '../../contracts/parts.js';
import type { AccessOptions } from '../access.js';
import { Approvals } from './approvals.js';
import { Messages } from './messages.js';
import { type AnswerSchema, type CallOptions, PlatformApi, type PostOptions, withRetries } from './platform-api.js';
import { resumedStream, type StreamPosition } from './resumed-stream.js';
import { messageParams, rpcRequest, rpcResult, type SendOptions, streamEvents } from './rpc.js';
import { Sessions } from './sessions.js';
import { type JsonObject, readJson } from './transport.js';

export interface FleetClientOptions extends AccessOptions {
  /** `agent_type` claim of the token; the platform's default is `credential`. */
  agentType?: string;
}

/** Four missed keep-alive comments: the connection is dead, however open it looks. */
const STREAM_SILENCE_MS = 60_000;
const AS_IT_IS: AnswerSchema<JsonObject> = { parse: (value) => value as JsonObject };

/**
 * A caller of the platform. Tokens are cached, renewed before they end, and once more after a 401. Requests that a repeat does not do
 * twice are repeated up to three times when the platform is away. Everything throws `ApiError`, `UnreachableError`, or the reason
 * of the caller's own signal.
 */
export class FleetClient {
  readonly sessions: Sessions;
  readonly messages: Messages;
  readonly approvals: Approvals;
  readonly #api: PlatformApi;

  /** @throws Error when an address or a credential is missing */
  constructor(options: FleetClientOptions = {}) {
    this.#api = new PlatformApi(options, options.agentType);
    this.sessions = new Sessions(this.#api);
    this.messages = new Messages(this.#api);
    this.approvals = new Approvals(this.#api);
  }

  /** An access token that has not ended. */
  token(): Promise<string> {
    return this.#api.tokens.get();
  }

  /** Any operation of the interface: POSTs `body` to `path`; with a schema the answer is checked. Not repeated unless told to. */
  post(path: string, body?: unknown): Promise<JsonObject>;
  post<T>(path: string, body: unknown, schema: AnswerSchema<T>, options?: PostOptions): Promise<T>;
  async post<T>(path: string, body: unknown = {}, schema?: AnswerSchema<T>, options: PostOptions = {}) {
    return schema ? this.#api.post(path, body, schema, options) : this.#api.post(path, body, AS_IT_IS, options);
  }

  /**
   * A2A `message/send`: the task at its end, when it waits for a human, or after the platform's `SEND_WAIT_MS`. A repeat after a
   * failure has the same `messageId`, so that the message is there once.
   */
  async send(input: string | Part[], options: SendOptions = {}): Promise<Task> {
    const params = messageParams(input, options.messageId ?? randomUUID(), options);
    return withRetries(async () => this.#task('message/send', params, options), options.signal);
  }

  /**
   * A2A `message/stream`: first the task, then its updates; ends at a final state or when it waits for a human. A connection that
   * breaks is opened again after the last event, without a gap or a repeat; where the platform does not keep that event any more,
   * the whole task comes once again in its place.
   */
  stream(input: string | Part[], options: SendOptions = {}): AsyncGenerator<StreamEvent> {
    const params = messageParams(input, options.messageId ?? randomUUID(), options);
    return this.#follow({ taskId: '', lastEventId: '' }, params, options);
  }

  /** Follows a task that was sent before: A2A `tasks/resubscribe`, resumed like `stream`. */
  resubscribe(taskId: string, options: CallOptions & { lastEventId?: string } = {}): AsyncGenerator<StreamEvent> {
    return this.#follow({ taskId, lastEventId: options.lastEventId ?? '' }, {}, options);
  }

  /** Takes no new call; connections end when what is in flight has been answered. */
  close(): void {
    this.#api.close();
  }

  /** Cuts its connections; what is in flight fails with `UnreachableError`. */
  destroy(): void {
    this.#api.destroy();
  }

  #follow(from: StreamPosition, message: JsonObject, options: SendOptions): AsyncGenerator<StreamEvent> {
    const open = (position: StreamPosition) => this.#open(position, message, options);
    return resumedStream(open, from, options.signal);
  }

  /** The message itself until its task is known: sent again it is the same task, and the stream begins at its first event. */
  async #open({ taskId, lastEventId }: StreamPosition, message: JsonObject, options: SendOptions) {
    const body = taskId ? rpcRequest('tasks/resubscribe', { id: taskId }) : rpcRequest('message/stream', message);
    const answer = await this.#api.open('/send', {
      body,
      silenceMs: STREAM_SILENCE_MS,
      headers: { ...traceHeader(options), ...(lastEventId && { 'last-event-id': lastEventId }) },
      ...(options.signal && { signal: options.signal }),
    });
    return streamEvents(answer);
  }

  async #task(method: string, params: JsonObject, options: SendOptions): Promise<Task> {
    const answer = await this.#api.open('/send', {
      body: rpcRequest(method, params),
      headers: traceHeader(options),
      ...(options.signal && { signal: options.signal }),
    });
    return Task.parse(rpcResult(await readJson(answer)));
  }
}

function traceHeader({ traceparent }: SendOptions): Record<string, string> {
  return traceparent ? { traceparent } : {};
}
