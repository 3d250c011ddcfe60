import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** Between two looks for connections that a stop need not wait for. */
const LOOK_MS = 100;
/** Readers that stall are cut off after this at the earliest. */
const CUT_MIN_MS = 1_000;

/** The connections of the API's callers, and how a stop ends them. */
export class ApiConnections {
  readonly #sockets = new Set<Socket>();

  /** @param server before it listens */
  constructor(server: Server) {
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /**
   * Takes no new requests and waits for answers under way.
   * @param draining is aborted, which ends streams and waiting calls
   * @param graceMs then whoever still reads is cut off
   */
  async close(http: FastifyInstance, draining: AbortController, graceMs: number): Promise<void> {
    draining.abort();
    // A stalled reader would otherwise block the close for ever.
    const cut = setTimeout(() => http.server.closeAllConnections(), Math.max(CUT_MIN_MS, graceMs));
    const idle = setInterval(() => this.#closeIdle(http.server), LOOK_MS);
    await http.close();
    clearTimeout(cut);
    clearInterval(idle);
  }

  /** Clients open connections ahead; Node takes one on which nothing was ever said for one with a request under way. */
  #closeIdle(server: Server): void {
    server.closeIdleConnections();
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy();
  }
}
