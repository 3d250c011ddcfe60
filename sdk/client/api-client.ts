import type { Part } from '../../contracts/a2a/parts.js';
import type { AnswerSchema, CallOptions, PlatformApi, PostOptions } from './api/platform-api.js';
import { Operations } from './generated/operations.js';
import { randomId } from './send/random-id.js';
import type { StreamPosition } from './send/resumed-stream.js';
import { RpcCalls } from './send/rpc-calls.js';
import { messageParams, type SendOptions } from './send/send-options.js';
import { type EndedTask, hasEnded, isWait, type StreamEvent, type Task } from './send/sent-task.js';
import { Tasks } from './send/tasks.js';
import type { JsonObject } from './transport/transport.js';
import { WaitingKnowledge } from './waiting/knowledge.js';
import { WaitingMessages } from './waiting/messages.js';
import { WaitingPlans } from './waiting/plans.js';

const UNCHECKED: AnswerSchema<JsonObject> = { parse: (value) => value as JsonObject };

/**
 * The calls of a client, on Node and in browsers. Requests and answers have the names of the API in camelCase; answers are passed on with what
 * a newer platform adds.
 */
export class ApiClient extends Operations {
  override readonly messages: WaitingMessages;
  override readonly plans: WaitingPlans;
  override readonly knowledge: WaitingKnowledge;
  /** A2A's methods for tasks that exist. */
  readonly tasks: Tasks;
  readonly #api: PlatformApi;
  readonly #rpc: RpcCalls;

  /** @param currentTraceparent the span that a message belongs to where its caller names none; empty without one */
  constructor(api: PlatformApi, currentTraceparent?: () => string) {
    super(api);
    this.#api = api;
    this.#rpc = new RpcCalls(api, currentTraceparent);
    this.messages = new WaitingMessages(api);
    this.plans = new WaitingPlans(api);
    this.knowledge = new WaitingKnowledge(api);
    this.tasks = new Tasks(this.#rpc);
  }

  /** A valid access token. */
  token(): Promise<string> {
    return this.#api.tokens.get();
  }

  /**
   * Calls an operation as it is on the wire, for one that this release does not know: POSTs `body` to `path`, with names in snake_case. A
   * schema validates the answer. Retried only with `options.retry`.
   */
  post(path: string, body?: unknown): Promise<JsonObject>;
  post<T>(path: string, body: unknown, schema: AnswerSchema<T>, options?: PostOptions): Promise<T>;
  async post<T>(path: string, body: unknown = {}, schema?: AnswerSchema<T>, options: PostOptions = {}) {
    return schema ? this.#api.post(path, body, schema, options) : this.#api.post(path, body, UNCHECKED, options);
  }

  /**
   * A2A `message/send`: returns the task when it ends, when it waits for a human, or after the platform's `SEND_WAIT_MS`; `hasEnded` and
   * `isWaiting` say which. With `throughQuestions` it waits until the task has ended. A retry has the same `messageId`, so the message is
   * accepted only once.
   */
  send(input: string | Part[], options: SendOptions & { throughQuestions: true }): Promise<EndedTask>;
  send(input: string | Part[], options?: SendOptions): Promise<Task>;
  async send(input: string | Part[], options: SendOptions = {}): Promise<Task> {
    const params = messageParams(input, options.messageId ?? randomId(), options);
    const task = await this.#rpc.call<Task>('message/send', params, options, true);
    if (!options.throughQuestions || hasEnded(task)) return task;
    const call = options.signal ? { signal: options.signal } : {};
    await this.messages.waitForEnd(task.id, call);
    return this.tasks.get(task.id, call);
  }

  /**
   * A2A `message/stream`: yields the task, then its updates, and ends at a final state or when the task waits for a human; with
   * `throughQuestions` it goes on when the human has answered. A broken connection is reopened after the last event, without a gap or a
   * repeat. When the platform no longer retains that event, the stream continues with the whole task.
   */
  stream(input: string | Part[], options: SendOptions = {}): AsyncGenerator<StreamEvent> {
    const params = messageParams(input, options.messageId ?? randomId(), options);
    const position = { taskId: '', lastEventId: '' };
    const events = this.#rpc.stream(position, params, options);
    return options.throughQuestions ? this.#throughQuestions(events, position, options) : events;
  }

  async *#throughQuestions(events: AsyncGenerator<StreamEvent>, position: StreamPosition, options: CallOptions) {
    for (let next = events; ; next = this.#rpc.stream(position, {}, options)) {
      let waits = false;
      for await (const event of next) {
        if (event.kind !== 'artifact-update') waits = isWait(event.status.state);
        yield event;
      }
      if (!waits) return;
      await this.messages.waitForAnswer(position.taskId, options);
    }
  }

  /** Accepts no new calls, and closes the connections when in-flight calls have been answered. */
  close(): void {
    this.#api.close();
  }

  /** Closes the connections at once; in-flight calls fail with `UnreachableError`. */
  destroy(): void {
    this.#api.destroy();
  }
}
