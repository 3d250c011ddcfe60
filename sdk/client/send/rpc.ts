import { ApiError } from '../api/errors.js';
import { type Answer, type JsonObject, readJson } from '../transport/transport.js';
import { readEvents } from './event-reader.js';
import { randomId } from './random-id.js';
import type { StreamEvent } from './sent-task.js';

/** A JSON-RPC 2.0 request of A2A 0.3 for `/send`. */
export function rpcRequest(method: string, params: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id: randomId(), method, params };
}

/**
 * The `result` of a JSON-RPC response.
 * @throws ApiError when the response is an error
 */
export function rpcResult(response: JsonObject): unknown {
  const error = response.error as { code?: number; message?: string; data?: unknown } | undefined;
  if (!error) return response.result;
  throw new ApiError(error.message ?? 'JSON-RPC error', { status: 200, code: codeOf(error), rpcCode: error.code });
}

/** The platform's code, which is in `error.data`: directly, or in the first item of a list. */
function codeOf(error: { code?: number; data?: unknown }): string {
  const data: unknown = Array.isArray(error.data) ? error.data[0] : error.data;
  if (typeof data === 'string') return data;
  const { code, reason } = (data ?? {}) as { code?: unknown; reason?: unknown };
  if (typeof code === 'string') return code;
  return typeof reason === 'string' ? reason : String(error.code ?? 'RPC_ERROR');
}

/** An event with its id, after which a resume continues; empty when the stream has no ids. */
export interface NumberedEvent {
  id: string;
  event: StreamEvent;
}

/**
 * The events of a streamed answer. A JSON answer instead of a stream is an error or a single event.
 * @throws ApiError for a JSON-RPC error
 * @throws UnreachableError when the connection breaks before the stream's end
 */
export async function* streamEvents(answer: Answer): AsyncGenerator<NumberedEvent> {
  if (!answer.header('content-type')?.startsWith('text/event-stream')) {
    yield { id: '', event: rpcResult(await readJson(answer)) as StreamEvent };
    return;
  }
  try {
    for await (const { id, data } of readEvents(answer.body)) {
      yield { id, event: rpcResult(JSON.parse(data) as JsonObject) as StreamEvent };
    }
  } finally {
    answer.discard();
  }
}
