import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';

/** A way to a server on this machine that can be cut. */
export interface CuttingProxy {
  port: number;
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
    socket.pipe(onward).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.close();
    cut();
  };
  return { port: (server.address() as AddressInfo).port, cut, close };
}
