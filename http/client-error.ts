import { randomUUID } from 'node:crypto';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorCode } from '../contracts/errors.js';
import { corsHeaders } from './cors.js';

/** Time to close the connection after the answer. A connection that is destroyed at once may lose the answer on its way. */
const CLOSE_MS = 5_000;

type Refusal = [status: number, code: ErrorCode, message: string];
const REFUSALS: Partial<Record<string, Refusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'REQUEST_TIMEOUT', 'The request took too long to arrive.'],
  HPE_HEADER_OVERFLOW: [431, 'BAD_REQUEST', 'The headers are too large.'],
};
const NOT_HTTP: Refusal = [400, 'BAD_REQUEST', 'The request is not valid HTTP.'];

/** An error of Node's HTTP parser, with the bytes that it was reading. */
type ClientError = Error & { code?: string; rawPacket?: unknown };

/** The body of every error. */
export function errorBody(code: ErrorCode, message: string, requestId: string) {
  return { error: message, code, request_id: requestId, timestamp: new Date().toISOString() };
}

/** The origin of a request that the parser refused: of its headers, where it had read them, else of the bytes that it was reading. */
function originOf(error: ClientError, response: ServerResponse | undefined): string | undefined {
  const bytes = Buffer.isBuffer(error.rawPacket) ? error.rawPacket.toString('latin1') : '';
  return response?.req.headers.origin ?? /^origin:[ \t]*(\S+)/im.exec(bytes)?.[1];
}

/**
 * Answers what the HTTP parser refuses (broken or large headers, a body that is too slow) with the API's error body, and closes the connection.
 * @param origins whose pages may read the answer
 */
export function answerClientError(error: ClientError, socket: Socket, origins: readonly string[]): void {
  const response = (socket as { _httpMessage?: ServerResponse })._httpMessage;
  // A response that has begun cannot be replaced, and a reset connection cannot carry one.
  if (error.code === 'ECONNRESET' || response?.headersSent) {
    socket.destroy();
    return;
  }
  if (!socket.writable) return; // it is answered: the rest of the request arrives, which the parser refuses again
  const [status, code, message] = REFUSALS[error.code ?? ''] ?? NOT_HTTP;
  const requestId = randomUUID();
  const body = JSON.stringify(errorBody(code, message, requestId));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
    ...Object.entries(corsHeaders(origins, originOf(error, response))).map(([name, value]) => `${name}: ${value}`),
  ];
  const limit = setTimeout(() => socket.destroy(), CLOSE_MS);
  socket.once('close', () => clearTimeout(limit));
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}
