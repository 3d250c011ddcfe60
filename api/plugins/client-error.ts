import { randomUUID } from 'node:crypto';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorCode } from '../../contracts/errors.js';
import { errorBody } from './error-contract.js';

type Refusal = [status: number, code: ErrorCode, message: string];
const REFUSALS: Partial<Record<string, Refusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'REQUEST_TIMEOUT', 'The request took too long to arrive.'],
  HPE_HEADER_OVERFLOW: [431, 'BAD_REQUEST', 'The headers are too large.'],
};
const NOT_HTTP: Refusal = [400, 'BAD_REQUEST', 'The request is not valid HTTP.'];

/**
 * Answers requests that Node's HTTP parser refuses (both Content-Length and Transfer-Encoding, headers that are too large or broken, a body
 * that is too slow) with the error body of the API, and closes the connection.
 */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  // A response that has begun cannot be replaced, and a reset connection cannot carry one.
  const hasBegun = (socket as { _httpMessage?: ServerResponse })._httpMessage?.headersSent === true;
  if (error.code === 'ECONNRESET' || !socket.writable || hasBegun) {
    socket.destroy();
    return;
  }
  const [status, code, message] = REFUSALS[error.code ?? ''] ?? NOT_HTTP;
  const requestId = randomUUID();
  const body = JSON.stringify(errorBody(code, message, requestId));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}
