import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { PlatformError } from '../../runtime/errors.js';
import { uuidv7 } from '../../runtime/ids.js';

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** The error body of the HTTP API (decisions.md, Conventions). Any other error than a PlatformError is an INTERNAL_ERROR without details. */
function answerFor(request: Pick<IncomingMessage, 'headers'>, error: unknown) {
  const known =
    error instanceof PlatformError ? error : new PlatformError('INTERNAL_ERROR', 'An unexpected error occurred.');
  const given = request.headers['x-request-id'];
  const requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : uuidv7();
  const timestamp = new Date().toISOString();
  const body = JSON.stringify({ error: known.message, code: known.code, request_id: requestId, timestamp });
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
    connection: 'close',
    ...known.headers,
  };
  return { status: known.statusCode, headers, body };
}

/** Answers a request with an error and closes its connection. */
export function respondWithError(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  const { status, headers, body } = answerFor(request, error);
  response.writeHead(status, headers).end(body);
}

/** Answers what is not valid HTTP, and closes the connection. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const late = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
  const refusal = late
    ? new PlatformError('REQUEST_TIMEOUT', 'The request did not arrive in time.')
    : new PlatformError('BAD_REQUEST', 'The request is not valid HTTP.');
  refuseUpgrade({ headers: {} }, socket, refusal);
}

/** Answers an upgrade request with an error instead of 101. */
export function refuseUpgrade(request: Pick<IncomingMessage, 'headers'>, socket: Duplex, error: unknown): void {
  const { status, headers, body } = answerFor(request, error);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('\r\n')}\r\n\r\n${body}`, () =>
    socket.destroy(),
  );
}
