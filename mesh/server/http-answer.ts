import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { errorBody } from '../../http/client-error.js';
import { corsHeaders, preflightHeaders } from '../../http/cors.js';
import { PlatformError } from '../../runtime/errors.js';
import { uuidv7 } from '../../runtime/ids.js';

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** The error body of the HTTP API. Any other error than a PlatformError is an INTERNAL_ERROR without details. */
function answerFor(request: Pick<IncomingMessage, 'headers'>, error: unknown) {
  const known =
    error instanceof PlatformError ? error : new PlatformError('INTERNAL_ERROR', 'An unexpected error occurred.');
  const given = request.headers['x-request-id'];
  const requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : uuidv7();
  const body = JSON.stringify(errorBody(known.code, known.message, requestId));
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
    connection: 'close',
    ...known.headers,
  };
  return { status: known.statusCode, headers, body };
}

/**
 * Answers a request with an error and closes its connection. A browser that asks before its request learns that it may send it, so that its
 * page can read the error.
 * @param origins whose pages may read the answer
 */
export function respondWithError(
  request: IncomingMessage,
  response: ServerResponse,
  { error, origins }: { error: unknown; origins: readonly string[] },
): void {
  const cors = corsHeaders(origins, request.headers.origin);
  const preflight = preflightHeaders(origins, request);
  const { status, headers, body } = answerFor(request, error);
  if (preflight) response.writeHead(204, { ...cors, ...preflight }).end();
  else response.writeHead(status, { ...headers, ...cors }).end(body);
}

/** Answers an upgrade request with an error instead of 101. */
export function refuseUpgrade(request: Pick<IncomingMessage, 'headers'>, socket: Duplex, error: unknown): void {
  const { status, headers, body } = answerFor(request, error);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('\r\n')}\r\n\r\n${body}`, () =>
    socket.destroy(),
  );
}
