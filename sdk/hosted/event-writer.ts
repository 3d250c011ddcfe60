import type { ServerResponse } from 'node:http';

const KEEP_ALIVE_MS = 15_000;

/** A response of server-sent events, with a keep-alive comment every 15 s. Events after a disconnect are dropped. */
export class EventWriter {
  readonly #response: ServerResponse;
  readonly #keepAlive: NodeJS.Timeout;

  /** The headers go out with the first event. */
  constructor(response: ServerResponse) {
    this.#response = response;
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    this.#keepAlive = setInterval(() => {
      if (!response.writableNeedDrain) response.write(': keep-alive\n\n');
    }, KEEP_ALIVE_MS);
    response.once('close', () => clearInterval(this.#keepAlive));
  }

  /** Resolves when the connection accepts more, or is closed. */
  async write(body: object): Promise<void> {
    const response = this.#response;
    if (response.destroyed || response.write(`data: ${JSON.stringify(body)}\n\n`)) return;
    await new Promise<void>((resolve) => {
      const onReady = () => {
        response.off('drain', onReady).off('close', onReady);
        resolve();
      };
      response.on('drain', onReady).on('close', onReady);
    });
  }

  end(): void {
    clearInterval(this.#keepAlive);
    this.#response.end();
  }
}
