import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

interface SeenRequest {
  method: string;
  path: string;
  body?: unknown;
  lastEventId?: string;
}

/** A server on this machine that the test writes: objects are answered as JSON, text as server-sent events. */
export async function answering(answer: (request: SeenRequest) => object | string) {
  const requests: SeenRequest[] = [];
  const reply = async (request: IncomingMessage) => {
    const given = await text(request);
    const lastEventId = request.headers['last-event-id'];
    const seen = {
      method: request.method ?? '',
      path: request.url ?? '',
      ...(given !== '' && { body: given.startsWith('{') ? JSON.parse(given) : given }),
      ...(typeof lastEventId === 'string' && { lastEventId }),
    };
    requests.push(seen);
    return answer(seen);
  };
  const server = createServer((request, response) => {
    void reply(request).then((body) => {
      const isStream = typeof body === 'string';
      response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json');
      response.end(isStream ? body : JSON.stringify(body));
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}
