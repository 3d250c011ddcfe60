import { randomUUID } from 'node:crypto';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { errorBody } from './error-contract.js';

interface Refusal {
  status: number;
  code: 'BAD_REQUEST' | 'REQUEST_TIMEOUT';
  message: string;
}

function refusalOf(code: string | undefined): Refusal {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return { status: 408, code: 'REQUEST_TIMEOUT', message: 'The request took too long to arrive.' };
  }
  if (code === 'HPE_HEADER_OVERFLOW')
    return { status: 431, code: 'BAD_REQUEST', message: 'The headers are too large.' };
  return { status: 400, code: 'BAD_REQUEST', message: 'The request is not valid HTTP.' };
}

/**
 * Answers requests that Node's HTTP parser refuses (both Content-Length and Transfer-Encoding, headers that are too large or broken, a body
 * that is too slow) with the error body of the API, and closes the connection.
 */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  const refusal = refusalOf(error.code);
  // A response that has begun cannot be replaced, and a reset connection cannot carry one.
  const hasBegun = (socket as { _httpMessage?: ServerResponse })._httpMessage?.headersSent === true;
  if (error.code === 'ECONNRESET' || !socket.writable || hasBegun) {
    socket.destroy();
    return;
  }
  const requestId = randomUUID();
  const body = JSON.stringify(errorBody(refusal.code, refusal.message, requestId));
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}
