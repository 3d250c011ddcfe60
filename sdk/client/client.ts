import { setTimeout as delay } from 'node:timers/promises';
import { type StreamEvent, Task } from '../../contracts/a2a.js';
import {
  isTerminal,
  MessageGetByIdResponse,
  type MessageRecord,
  MessagesPendingResponse,
  type ResolveRequest,
  ResolveResponse,
} from '../../contracts/messages.js';
import type { Part } from '../../contracts/parts.js';
import { ApiError, isTransient } from './errors.js';
import { rpcResult, type SendOptions, sendRequest, streamEvents } from './rpc.js';
import { TokenSource } from './token-source.js';
import { type JsonObject, type RequestOptions, readJson, Transport } from './transport.js';

export interface ClientOptions {
  /** Where the platform's API is, for example `http://127.0.0.1:8080`. */
  baseUrl: string;
  clientId: string;
  clientSecret: string;
  /** Certificate authority in PEM, for an `https` platform with a local one. */
  ca?: string;
  /** `agent_type` claim of the token; the platform's default is `credential`. */
  agentType?: string;
}

export interface WaitOptions {
  /** `terminal`: completed, failed or canceled. `settled` (default): those, or waiting for a human. */
  until?: 'terminal' | 'settled';
  /** Gives up after this long; 600,000 by default. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** Anything that checks an answer, for example a zod schema of `contracts/`. */
export interface AnswerSchema<T> {
  parse(value: unknown): T;
}

const POLL_FIRST_MS = 100;
const POLL_MAX_MS = 1_000;

/** A caller of the platform. Tokens are cached, renewed before they end, and once more after a 401. */
export class FleetClient {
  readonly #transport: Transport;
  readonly #tokens: TokenSource;

  constructor(options: ClientOptions) {
    this.#transport = new Transport(options.baseUrl, options.ca);
    this.#tokens = new TokenSource(this.#transport, options);
  }

  /** An access token, valid for a minute at least. */
  token(): Promise<string> {
    return this.#tokens.get();
  }

  /** POSTs `body` to `path` with the token; with a schema the answer is checked. @throws ApiError | UnreachableError */
  post(path: string, body?: unknown): Promise<JsonObject>;
  post<T>(path: string, body: unknown, schema: AnswerSchema<T>): Promise<T>;
  async post<T>(path: string, body: unknown = {}, schema?: AnswerSchema<T>): Promise<T | JsonObject> {
    const response = await this.#authorized(path, { body });
    const answer = await readJson(response);
    return schema ? schema.parse(answer) : answer;
  }

  /** A2A `message/send`: the task at its end, when it waits for a human, or after the platform's `SEND_WAIT_MS`. */
  async send(input: string | Part[], options: SendOptions = {}): Promise<Task> {
    const response = await this.#send('message/send', input, options);
    return Task.parse(rpcResult(await readJson(response)));
  }

  /** A2A `message/stream`: first the task, then its updates; ends at a final state or when it waits for a human. */
  async *stream(input: string | Part[], options: SendOptions = {}): AsyncGenerator<StreamEvent> {
    yield* streamEvents(await this.#send('message/stream', input, options));
  }

  /** Answers what the message waits for. */
  resolve(messageId: string, answer: ResolveRequest) {
    return this.post(`/messages/${encodeURIComponent(messageId)}/resolve`, answer, ResolveResponse);
  }

  /** Messages that wait for a human, of one session or of all. */
  async pending(filter: { session_id?: string; limit?: number; offset?: number } = {}): Promise<MessageRecord[]> {
    return (await this.post('/messages/pending', filter, MessagesPendingResponse)).messages;
  }

  async message(messageId: string): Promise<MessageRecord> {
    return (await this.post('/messages/get_by_id', { message_id: messageId }, MessageGetByIdResponse)).message;
  }

  /**
   * Asks for the message until it has settled; survives a platform that is away for a while.
   * @throws ApiError with code `REQUEST_TIMEOUT` when it has not settled in time
   */
  async waitFor(messageId: string, options: WaitOptions = {}): Promise<MessageRecord> {
    const { until = 'settled', timeoutMs = 600_000, signal } = options;
    const deadline = Date.now() + timeoutMs;
    for (let waitMs = POLL_FIRST_MS; ; waitMs = Math.min(waitMs * 2, POLL_MAX_MS)) {
      const message = await this.message(messageId).catch((error: unknown) => {
        if (!isTransient(error)) throw error;
        return null;
      });
      if (message && (isTerminal(message.state) || (until === 'settled' && message.state === 'input-required')))
        return message;
      if (Date.now() >= deadline) {
        throw new ApiError(`message ${messageId} has not settled in ${timeoutMs} ms`, {
          status: 408,
          code: 'REQUEST_TIMEOUT',
        });
      }
      await delay(waitMs, undefined, { signal });
    }
  }

  /** Ends its connections when what is in flight has been answered. */
  close(): Promise<void> {
    return this.#transport.close();
  }

  /** Cuts its connections; what is in flight fails with `UnreachableError`. */
  destroy(): Promise<void> {
    return this.#transport.destroy();
  }

  #send(method: 'message/send' | 'message/stream', input: string | Part[], options: SendOptions) {
    return this.#authorized('/send', {
      body: sendRequest(method, input, options),
      ...(options.signal && { signal: options.signal }),
      ...(options.traceparent && { headers: { traceparent: options.traceparent } }),
    });
  }

  async #authorized(path: string, options: RequestOptions) {
    const bearer = await this.#tokens.get();
    try {
      return await this.#transport.request(path, { ...options, bearer });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error;
      this.#tokens.invalidate(bearer);
      return this.#transport.request(path, { ...options, bearer: await this.#tokens.get() });
    }
  }
}

/** A client for the platform at `baseUrl`. */
export function createClient(options: ClientOptions): FleetClient {
  return new FleetClient(options);
}
