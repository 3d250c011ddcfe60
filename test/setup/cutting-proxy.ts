import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';
import { Transform } from 'node:stream';

/** A way to a server on this machine that can be cut. */
export interface CuttingProxy {
  port: number;
  /** How long everything that the server sends takes to arrive. */
  latencyMs: number;
  /** Cuts new connections as well. */
  isShut: boolean;
  /** Cuts every connection that goes through it; new ones are let through. */
  cut(): void;
  close(): void;
}

/** @param port of the server */
export async function startCuttingProxy(port: () => number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((socket) => {
    if (proxy.isShut) {
      socket.destroy();
      return;
    }
    const onward = dial(port(), '127.0.0.1');
    for (const each of [socket, onward]) {
      sockets.add(each);
      each.on('error', () => undefined); // a cut connection; the other half follows
      each.on('close', () => {
        sockets.delete(each);
        socket.destroy();
        onward.destroy();
      });
    }
    const late = new Transform({
      transform(bytes: Buffer, _encoding, done) {
        if (proxy.latencyMs === 0) done(null, bytes);
        else setTimeout(() => done(null, bytes), proxy.latencyMs);
      },
    });
    socket.pipe(onward).pipe(late).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.close();
    cut();
  };
  const { port: ownPort } = server.address() as AddressInfo;
  const proxy: CuttingProxy = { port: ownPort, latencyMs: 0, isShut: false, cut, close };
  return proxy;
}
