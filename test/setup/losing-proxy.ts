import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';

/** A way to a server on this machine on which messages get lost, although both ends stay connected. */
export interface LosingProxy {
  port: number;
  /** What the server sends next that holds this text does not arrive. */
  lose(text: string): void;
  close(): void;
}

/** @param port of the server */
export async function startLosingProxy(port: number): Promise<LosingProxy> {
  const sockets = new Set<Socket>();
  const wanted = new Set<string>();
  const arrives = (chunk: Buffer): boolean => {
    const text = chunk.toString();
    for (const lost of wanted) if (text.includes(lost)) return !wanted.delete(lost);
    return true;
  };
  const server = createServer((socket) => {
    const onward = dial(port, '127.0.0.1');
    for (const each of [socket, onward]) {
      sockets.add(each);
      each.on('error', () => undefined); // the other half follows
      each.on('close', () => {
        sockets.delete(each);
        socket.destroy();
        onward.destroy();
      });
    }
    socket.pipe(onward);
    onward.on('data', (chunk: Buffer) => arrives(chunk) && socket.write(chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    lose: (text) => void wanted.add(text),
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
