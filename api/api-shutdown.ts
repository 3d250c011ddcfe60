import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { settledWithin } from '../runtime/promises/settled-within.js';

const CHECK_MS = 100;
const GRACE_MIN_MS = 1_000;
/** Calls that wait for an agent get its answer, if it comes within this time; then they get the task as it is. */
const LAST_ANSWERS_MS = 1_000;

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
   * Takes no new connection, ends streams and calls that still wait after a moment, and closes the API once everything is answered.
   * @param graceMs after it all connections are cut: a stalled reader would otherwise block the close for ever
   */
  async close(graceMs: number, lastAnswersMs = LAST_ANSWERS_MS): Promise<void> {
    const { server } = this.#http;
    const cut = setTimeout(() => server.closeAllConnections(), Math.max(GRACE_MIN_MS, graceMs));
    // Fastify closes connections that are idle now; one that is answered later would stay for the time of a keep-alive.
    const check = setInterval(() => {
      server.closeIdleConnections();
      this.#closeUnused();
    }, CHECK_MS);
    try {
      const closed = this.#http.close();
      const ended = closed.then(
        () => true,
        () => true, // it rejects below
      );
      await settledWithin(ended, Math.min(graceMs, lastAnswersMs));
      this.#draining.abort();
      await closed;
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
