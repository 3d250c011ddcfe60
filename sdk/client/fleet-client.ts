import { randomUUID } from 'node:crypto';
import { type StreamEvent, Task } from '../../contracts/a2a/a2a.js';
import type { Part } from '../../contracts/a2a/parts.js';
import type { AccessOptions } from '../access.js';
import { Alerts } from './alerts.js';
import { Approvals } from './approvals.js';
import { Knowledge } from './knowledge.js';
import { Messages } from './messages.js';
import { Plans } from './plans.js';
import { type AnswerSchema, type CallOptions, PlatformApi, type PostOptions, withRetries } from './platform-api.js';
import { Policies } from './policies.js';
import { resumedStream, type StreamPosition } from './resumed-stream.js';
import { messageParams, rpcRequest, rpcResult, type SendOptions, streamEvents } from './rpc.js';
import { Sessions } from './sessions.js';
import { Telemetry } from './telemetry.js';
import { type JsonObject, readJson } from './transport.js';
import { Usage } from './usage.js';

export interface FleetClientOptions extends AccessOptions {
  /** `agent_type` claim of the token; the platform's default is `credential`. */
  agentType?: string;
}

/** Four missed keep-alive comments: the connection is lost. */
const STREAM_SILENCE_MS = 60_000;
const UNCHECKED: AnswerSchema<JsonObject> = { parse: (value) => value as JsonObject };

/**
 * A client of the platform's API. Tokens are cached and renewed before they expire, and once after a 401. Idempotent requests are retried
 * up to three times when the platform is unavailable. Every method throws `ApiError`, `UnreachableError`, or the reason of the caller's
 * signal.
 */
export class FleetClient {
  readonly sessions: Sessions;
  readonly messages: Messages;
  readonly approvals: Approvals;
  readonly policies: Policies;
  readonly alerts: Alerts;
  readonly knowledge: Knowledge;
  readonly plans: Plans;
  readonly telemetry: Telemetry;
  readonly usage: Usage;
  readonly #api: PlatformApi;

  /** @throws Error when an address or a credential is missing */
  constructor(options: FleetClientOptions = {}) {
    this.#api = new PlatformApi(options, options.agentType);
    this.sessions = new Sessions(this.#api);
    this.messages = new Messages(this.#api);
    this.approvals = new Approvals(this.#api);
    this.policies = new Policies(this.#api);
    this.alerts = new Alerts(this.#api);
    this.knowledge = new Knowledge(this.#api);
    this.plans = new Plans(this.#api);
    this.telemetry = new Telemetry(this.#api);
    this.usage = new Usage(this.#api);
  }

  /** A valid access token. */
  token(): Promise<string> {
    return this.#api.tokens.get();
  }

  /** Calls any API operation: POSTs `body` to `path`. A schema validates the answer. Retried only with `options.retry`. */
  post(path: string, body?: unknown): Promise<JsonObject>;
  post<T>(path: string, body: unknown, schema: AnswerSchema<T>, options?: PostOptions): Promise<T>;
  async post<T>(path: string, body: unknown = {}, schema?: AnswerSchema<T>, options: PostOptions = {}) {
    return schema ? this.#api.post(path, body, schema, options) : this.#api.post(path, body, UNCHECKED, options);
  }

  /**
   * A2A `message/send`: returns the task when it ends, when it waits for a human, or after the platform's `SEND_WAIT_MS`. A retry has the
   * same `messageId`, so the message is accepted only once.
   */
  async send(input: string | Part[], options: SendOptions = {}): Promise<Task> {
    const params = messageParams(input, options.messageId ?? randomUUID(), options);
    return withRetries(async () => this.#task('message/send', params, options), options.signal);
  }

  /**
   * A2A `message/stream`: yields the task, then its updates, and ends at a final state or when the task waits for a human. A broken
   * connection is reopened after the last event, without a gap or a repeat. When the platform no longer retains that event, the stream
   * continues with the whole task.
   */
  stream(input: string | Part[], options: SendOptions = {}): AsyncGenerator<StreamEvent> {
    const params = messageParams(input, options.messageId ?? randomUUID(), options);
    return this.#follow({ taskId: '', lastEventId: '' }, params, options);
  }

  /** A2A `tasks/resubscribe`: streams the updates of an existing task, and reopens broken connections like `stream`. */
  resubscribe(taskId: string, options: CallOptions & { lastEventId?: string } = {}): AsyncGenerator<StreamEvent> {
    return this.#follow({ taskId, lastEventId: options.lastEventId ?? '' }, {}, options);
  }

  /** Accepts no new calls, and closes the connections when in-flight calls have been answered. */
  close(): void {
    this.#api.close();
  }

  /** Closes the connections at once; in-flight calls fail with `UnreachableError`. */
  destroy(): void {
    this.#api.destroy();
  }

  #follow(from: StreamPosition, message: JsonObject, options: SendOptions): AsyncGenerator<StreamEvent> {
    const open = (position: StreamPosition) => this.#open(position, message, options);
    return resumedStream(open, from, options.signal);
  }

  /** Repeats the message until its task id is known: the same message returns the same task, and the stream starts at its first event. */
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
