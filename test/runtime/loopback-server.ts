import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { cleanUp } from '../setup/clean-up.js';
import { selfSigned } from './self-signed.js';

/** A server on 127.0.0.1 that lives for one test, or for the file that starts it at its top. */
export interface LoopbackServer {
  port: number;
  url: string;
  /** Connections accepted so far. */
  connections: () => number;
  /** Method and path of each HTTP request so far; empty for a plain TCP server. */
  requests: string[];
}

async function listen(server: Server, requests: string[] = [], onPort = 0): Promise<LoopbackServer> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined); // the client may reset at any time
  });
  await new Promise<void>((resolve) => server.listen(onPort, '127.0.0.1', resolve));
  cleanUp(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, connections: () => connections, requests };
}

function noting(requests: string[], answer: RequestListener): RequestListener {
  return (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    answer(request, response);
  };
}

/** @param onPort where the test has promised it; a free one when absent */
export function httpServer(answer: RequestListener, onPort?: number): Promise<LoopbackServer> {
  const requests: string[] = [];
  return listen(createServer(noting(requests, answer)), requests, onPort);
}

/** HTTPS with a certificate that nobody trusts; `url` still says http. */
export function untrustedServer(answer: RequestListener): Promise<LoopbackServer> {
  const requests: string[] = [];
  return listen(createTlsServer(selfSigned(), noting(requests, answer)), requests);
}

export function tcpServer(onConnection: (socket: Socket) => void): Promise<LoopbackServer> {
  return listen(createTcpServer(onConnection));
}
