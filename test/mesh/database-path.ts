import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to a database that can be cut: a port that passes everything on while it is open. */
export class DatabasePath {
  /** The database's URL by this way. */
  readonly url: string;
  readonly #sockets: Set<Socket>;
  readonly #state: { open: boolean };
  readonly #close: () => Promise<void>;

  private constructor(url: string, sockets: Set<Socket>, state: { open: boolean }, close: () => Promise<void>) {
    this.url = url;
    this.#sockets = sockets;
    this.#state = state;
    this.#close = close;
  }

  static async to(databaseUrl: string): Promise<DatabasePath> {
    const target = new URL(databaseUrl);
    const sockets = new Set<Socket>();
    const state = { open: true };
    const server = createServer((near) => {
      const far = connect(Number(target.port), target.hostname);
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(socket);
        socket.on('error', () => undefined); // it is cut on purpose
        socket.once('close', () => {
          sockets.delete(socket);
          other.destroy();
        });
      }
      if (!state.open) near.destroy();
      near.pipe(far).pipe(near);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = new URL(databaseUrl);
    url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
    return new DatabasePath(url.href, sockets, state, close);
  }

  /** Breaks what is connected and lets nobody through. */
  cut(): void {
    this.#state.open = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#state.open = true;
  }

  async close(): Promise<void> {
    this.cut();
    await this.#close();
  }
}
