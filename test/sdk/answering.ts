import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

export interface SeenRequest {
  method: string;
  path: string;
  // biome-ignore lint/suspicious/noExplicitAny: what the client under test has sent
  body?: any;
  lastEventId?: string;
  traceparent?: string;
}

/** An answer other than a 200. */
export class Reply {
  constructor(
    readonly body: object | string,
    readonly options: { status?: number; type?: string; cut?: boolean },
  ) {}
}

/**
 * A server on this machine that the test writes: objects are answered as JSON, text as server-sent events.
 * @param answer gives the answer, or the promise of one
 * @param tls of an authority of its own
 */
export async function answering(
  answer: (request: SeenRequest, authorization: string) => object | string,
  tls?: { cert: string; key: string },
) {
  const requests: SeenRequest[] = [];
  const authorizations: string[] = [];
  const reply = async (request: IncomingMessage) => {
    const given = await text(request);
    const { 'last-event-id': lastEventId, traceparent, authorization = '' } = request.headers;
    const seen = {
      method: request.method ?? '',
      path: request.url ?? '',
      ...(given !== '' && { body: given.startsWith('{') ? JSON.parse(given) : given }),
      ...(typeof lastEventId === 'string' && { lastEventId }),
      ...(typeof traceparent === 'string' && { traceparent }),
    };
    requests.push(seen);
    authorizations.push(authorization);
    return answer(seen, authorization);
  };
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    void reply(request).then((answered) => {
      const { body, options } = answered instanceof Reply ? answered : new Reply(answered, {});
      const isText = typeof body === 'string';
      const { status = 200, type = isText ? 'text/event-stream' : 'application/json', cut = false } = options;
      response.writeHead(status, { 'content-type': type, 'x-request-id': 'req-header' });
      const bytes = isText ? body : JSON.stringify(body);
      if (cut) response.write(bytes, () => response.destroy());
      else response.end(bytes);
    });
  const server = tls ? createHttpsServer(tls, listener) : createServer(listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http${tls ? 's' : ''}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, requests, authorizations };
}
