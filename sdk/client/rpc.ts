import { randomUUID } from 'node:crypto';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { Response } from 'undici';
import type { StreamEvent } from '../../contracts/a2a.js';
import type { Part } from '../../contracts/parts.js';
import { ApiError, UnreachableError } from './errors.js';
import { type JsonObject, readJson } from './transport.js';

export interface SendOptions {
  /** The session; without it one is opened. */
  contextId?: string;
  /** A task in `input-required` that this message answers. */
  taskId?: string;
  /** Routing and time: `instance_id`, `agent_type`, `skill_id`, `deadline_ms`. */
  metadata?: JsonObject;
  /** Idempotency key; the same one again returns the same task. */
  messageId?: string;
  /** `false` answers at once with the task as it is. */
  blocking?: boolean;
  /** W3C trace context of the caller. */
  traceparent?: string;
  signal?: AbortSignal;
}

/** A JSON-RPC 2.0 request of A2A 0.3 for `/send`. */
export function sendRequest(
  method: 'message/send' | 'message/stream',
  input: string | Part[],
  options: SendOptions,
): JsonObject {
  const { contextId, taskId, metadata, messageId = randomUUID(), blocking } = options;
  const parts = typeof input === 'string' ? [{ kind: 'text', text: input }] : input;
  const message = {
    kind: 'message',
    messageId,
    role: 'user',
    parts,
    ...(contextId && { contextId }),
    ...(taskId && { taskId }),
  };
  const configuration = blocking === undefined ? {} : { configuration: { blocking } };
  return {
    jsonrpc: '2.0',
    id: randomUUID(),
    method,
    params: { message, ...configuration, ...(metadata && { metadata }) },
  };
}

/**
 * The `result` of a JSON-RPC response.
 * @throws ApiError when it carries an `error`
 */
export function rpcResult(response: JsonObject): unknown {
  const error = response.error as { code?: number; message?: string; data?: unknown } | undefined;
  if (!error) return response.result;
  throw new ApiError(error.message ?? 'JSON-RPC error', { status: 200, code: codeOf(error), rpcCode: error.code });
}

/** The platform's own code travels in `error.data`, as a member or in a list. */
function codeOf(error: { code?: number; data?: unknown }): string {
  const data: unknown = Array.isArray(error.data) ? error.data[0] : error.data;
  if (typeof data === 'string') return data;
  const { code, reason } = (data ?? {}) as { code?: unknown; reason?: unknown };
  if (typeof code === 'string') return code;
  return typeof reason === 'string' ? reason : String(error.code ?? 'RPC_ERROR');
}

/**
 * The events of a streamed answer. A JSON answer in place of a stream is an error, or a single event.
 * @throws UnreachableError when the connection breaks before the stream's end
 */
export async function* streamEvents(response: Response): AsyncGenerator<StreamEvent> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    yield rpcResult(await readJson(response)) as StreamEvent;
    return;
  }
  if (!response.body) return;
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  const reader = events.getReader();
  try {
    for (;;) {
      const next = await reader.read().catch((error: unknown) => {
        throw new UnreachableError(response.url, error);
      });
      if (next.done) return;
      yield rpcResult(JSON.parse(next.value.data) as JsonObject) as StreamEvent;
    }
  } finally {
    await reader.cancel().catch(() => undefined); // it is over already when the connection broke
  }
}
