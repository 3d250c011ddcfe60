import { randomUUID } from 'node:crypto';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { z } from 'zod';
import { type StreamEvent, Task } from '../../../contracts/a2a/a2a.js';
import { GetTokenResponse } from '../../../contracts/api/auth.js';
import { MessageGetByIdResponse, type MessageRecord } from '../../../contracts/api/messages.js';
import { TELEMETRY_OPERATIONS } from '../../../contracts/api/telemetry.js';
import { ErrorBody } from '../../../contracts/primitives.js';
import { until } from '../until.js';

export interface Answer {
  status: number;
  headers: Headers;
  body: unknown;
}

export interface SendOptions {
  messageId?: string;
  contextId?: string;
  taskId?: string;
  blocking?: boolean;
  metadata?: Record<string, unknown>;
  data?: Record<string, unknown>;
  /** Who is told of the task's changes, as A2A 0.3 spells it. */
  pushNotificationConfig?: Record<string, unknown>;
  signal?: AbortSignal;
}

/** A JSON-RPC answer of `/send`, as it came. */
export interface RpcAnswer {
  status: number;
  headers: Headers;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
  body: unknown;
}

/** What every helper here needs of a platform; its addresses change when it is started again. */
export interface Reachable {
  devJson(): { base_url: string; client_id: string; client_secret: string };
}

/** A caller of the HTTP face that looks at statuses, headers and bodies as they are and checks them by the contracts. */
export class ApiClient {
  readonly #platform: Reachable;
  readonly #credential: { client_id: string; client_secret: string } | undefined;
  #token: string | undefined;

  constructor(platform: Reachable, credential?: { client_id: string; client_secret: string }) {
    this.#platform = platform;
    this.#credential = credential;
  }

  get baseUrl(): string {
    return this.#platform.devJson().base_url;
  }

  /** The caller's access token, fetched once. */
  async token(): Promise<string> {
    if (this.#token === undefined) {
      const { client_id, client_secret } = this.#credential ?? this.#platform.devJson();
      const answer = await this.raw('/auth/get_token', JSON.stringify({ client_id, client_secret }), {
        'content-type': 'application/json',
      });
      this.#token = GetTokenResponse.parse(answer.body).token;
    }
    return this.#token;
  }

  /** One POST of these bytes with these headers and nothing else. A stream of events has no end, and is left when it has begun. */
  async raw(path: string, body: string | null, headers: Record<string, string>, method = 'POST'): Promise<Answer> {
    const response = await fetch(new URL(path, this.baseUrl), { method, headers, body, redirect: 'manual' });
    const { status, headers: answered } = response;
    const isEndless = path === TELEMETRY_OPERATIONS.streamEvents.path && status === 200;
    if (isEndless) await response.body?.cancel();
    return { status, headers: answered, body: isEndless ? '' : parseIfJson(await response.text()) };
  }

  async post(path: string, body: unknown): Promise<Answer> {
    return this.raw(path, JSON.stringify(body), await this.headers());
  }

  async get(path: string): Promise<Answer> {
    return this.raw(path, null, {}, 'GET');
  }

  async headers(): Promise<Record<string, string>> {
    return { 'content-type': 'application/json', authorization: `Bearer ${await this.token()}` };
  }

  /** Posts, expects 200 and gives the body as the contract describes it. */
  async ok<Schema extends z.ZodType>(path: string, body: unknown, schema: Schema): Promise<z.infer<Schema>> {
    const answer = await this.post(path, body);
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    return schema.parse(answer.body);
  }

  /** Posts and gives `status code`, for example `409 SESSION_CLOSED`, after checking the error body's form. */
  async failure(path: string, body: unknown): Promise<string> {
    const answer = await this.post(path, body);
    return answer.status === 200 ? '200' : `${answer.status} ${ErrorBody.parse(answer.body).code}`;
  }

  /** One JSON-RPC call of `/send`, in this version of A2A; the default is what no header says. */
  async call(method: string, params: unknown, version?: string): Promise<RpcAnswer> {
    const headers = { ...(await this.headers()), ...(version !== undefined && { 'a2a-version': version }) };
    const answer = await this.raw('/send', JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), headers);
    return { ...answer, ...(answer.body as Pick<RpcAnswer, 'result' | 'error'>) };
  }

  /** `message/send` with one text part. */
  async rpc(text: string, options: SendOptions = {}): Promise<RpcAnswer> {
    const response = await fetch(new URL('/send', this.baseUrl), {
      method: 'POST',
      headers: await this.headers(),
      body: JSON.stringify(envelope('message/send', text, options)),
      signal: options.signal ?? null,
    });
    const body = parseIfJson(await response.text());
    const { result, error } = (body ?? {}) as Pick<RpcAnswer, 'result' | 'error'>;
    const isRpcError = typeof error === 'object' && error !== null;
    return { status: response.status, headers: response.headers, body, result, error: isRpcError ? error : undefined };
  }

  /** `message/send`, expecting a task. */
  async send(text: string, options: SendOptions = {}): Promise<Task> {
    const answer = await this.rpc(text, options);
    if (answer.result === undefined) throw new Error(`/send answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    return Task.parse(answer.result);
  }

  /** `message/stream`: every event until the stream ends. */
  async *stream(text: string, options: SendOptions = {}): AsyncGenerator<StreamEvent> {
    const response = await fetch(new URL('/send', this.baseUrl), {
      method: 'POST',
      headers: { ...(await this.headers()), accept: 'text/event-stream' },
      body: JSON.stringify(envelope('message/stream', text, options)),
      signal: options.signal ?? null,
    });
    if (!response.body || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
      throw new Error(`/send answered ${response.status}: ${await response.text()}`);
    }
    const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    for await (const event of events) {
      const { result, error } = JSON.parse(event.data) as { result?: StreamEvent; error?: unknown };
      if (result === undefined) throw new Error(`the stream failed: ${JSON.stringify(error)}`);
      yield result;
    }
  }

  async message(messageId: string): Promise<MessageRecord> {
    return (await this.ok('/messages/get_by_id', { message_id: messageId }, MessageGetByIdResponse)).message;
  }

  /** The message once it is in this state. */
  async untilState(messageId: string, state: string, timeoutMs?: number): Promise<MessageRecord> {
    let message: MessageRecord | undefined;
    await until(
      async () => {
        message = await this.message(messageId);
        return message.state === state || Promise.reject(new Error(`${message.state} ${message.error?.code ?? ''}`));
      },
      { timeoutMs, what: `message ${messageId} in state ${state}` },
    );
    return message as MessageRecord;
  }
}

function envelope(method: string, text: string, options: SendOptions) {
  const { messageId = randomUUID(), contextId, taskId, metadata, blocking, data, pushNotificationConfig } = options;
  const parts = data ? [{ kind: 'data', data }] : [{ kind: 'text', text }];
  return {
    jsonrpc: '2.0',
    id: 1,
    method,
    params: {
      message: { kind: 'message', messageId, role: 'user', parts, contextId, taskId },
      metadata,
      configuration: { blocking, pushNotificationConfig },
    },
  };
}

function parseIfJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // not every answer is JSON; the test decides whether that is right
  }
}
