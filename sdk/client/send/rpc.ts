import { HTTP_ERRORS } from '../../../contracts/errors.js';
import { ApiError } from '../api/errors.js';
import { type Answer, type JsonObject, readJson, requestIdOf } from '../transport/transport.js';
import { readEvents } from './event-reader.js';
import { randomId } from './random-id.js';
import type { StreamEvent } from './sent-task.js';

/** A JSON-RPC 2.0 request of A2A 0.3 for `/send`. */
export function rpcRequest(method: string, params: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id: randomId(), method, params };
}

/** The status that an error would have over HTTP: a retry and a caller decide by it. */
const STATUS_OF_CODE: Readonly<Record<string, number>> = {
  ...HTTP_ERRORS,
  TASK_NOT_FOUND: 404,
  SESSION_NOT_FOUND: 404,
  PUSH_CONFIG_NOT_FOUND: 404,
  UNSUPPORTED_OPERATION: 409,
};
const STATUS_OF_NUMBER: Readonly<Record<number, number>> = {
  [-32001]: 404,
  [-32002]: 409,
  [-32004]: 409,
  [-32601]: 404,
  [-32603]: 500,
};

/**
 * The `result` of a JSON-RPC response.
 * @param requestId that of its HTTP answer
 * @throws ApiError when the response is an error
 */
export function rpcResult(response: JsonObject, requestId: string): unknown {
  const error = response.error as { code?: number; message?: string; data?: unknown } | undefined;
  if (!error) return response.result;
  const code = codeOf(error);
  const status = STATUS_OF_CODE[code] ?? STATUS_OF_NUMBER[error.code ?? 0] ?? 400;
  throw new ApiError(error.message ?? 'JSON-RPC error', { status, code, requestId, rpcCode: error.code });
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
  const requestId = requestIdOf(answer);
  if (!answer.header('content-type')?.startsWith('text/event-stream')) {
    yield { id: '', event: rpcResult(await readJson(answer), requestId) as StreamEvent };
    return;
  }
  try {
    for await (const { id, data } of readEvents(answer.body)) {
      yield { id, event: rpcResult(JSON.parse(data) as JsonObject, requestId) as StreamEvent };
    }
  } finally {
    answer.discard();
  }
}
