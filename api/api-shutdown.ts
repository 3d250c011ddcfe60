import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

const CHECK_MS = 100;
const GRACE_MIN_MS = 1_000;

/** The orderly end of the API. To be made before it listens. */
export class ApiShutdown {
  readonly #http: FastifyInstance;
  readonly #draining: AbortController;
  readonly #sockets = new Set<Socket>();

  /** @param draining its signal is the `draining` of the API */
  constructor(http: FastifyInstance, draining: AbortController) {
    this.#http = http;
    this.#draining = draining;
    http.server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /**
   * Ends streams and waiting calls, and closes the API once everything is answered.
   * @param graceMs after it all connections are cut: a stalled reader would otherwise block the close for ever
   */
  async close(graceMs: number): Promise<void> {
    const { server } = this.#http;
    this.#draining.abort();
    const cut = setTimeout(() => server.closeAllConnections(), Math.max(GRACE_MIN_MS, graceMs));
    // Fastify closes connections that are idle now; one that is answered later would stay for the time of a keep-alive.
    const check = setInterval(() => {
      server.closeIdleConnections();
      this.#closeUnused();
    }, CHECK_MS);
    try {
      await this.#http.close();
    } finally {
      clearTimeout(cut);
      clearInterval(check);
    }
  }

  /** For Node a connection on which nothing has been asked yet is not idle. Browsers, proxies and pools open some in advance. */
  #closeUnused(): void {
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy();
  }
}
