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
 * Answers what Node's HTTP parser refuses (both Content-Length and Transfer-Encoding, too large or broken headers, a body that is
 * too slow) in the one error form, and closes the connection.
 */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  const refusal = refusalOf(error.code);
  // A response that has begun cannot be taken back; a reset connection takes none.
  const begun = (socket as { _httpMessage?: ServerResponse })._httpMessage?.headersSent === true;
  if (error.code === 'ECONNRESET' || !socket.writable || begun) {
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
