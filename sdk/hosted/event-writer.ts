import type { ServerResponse } from 'node:http';

const KEEP_ALIVE_MS = 15_000;

/** A response of server-sent events, with a comment every 15 s. What is written for a reader who is gone is dropped. */
export class EventWriter {
  readonly #response: ServerResponse;
  readonly #keepAlive: NodeJS.Timeout;

  /** Sends the head. */
  constructor(response: ServerResponse) {
    this.#response = response;
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.flushHeaders();
    this.#keepAlive = setInterval(() => {
      if (!response.writableNeedDrain) response.write(': keep-alive\n\n');
    }, KEEP_ALIVE_MS);
    response.once('close', () => clearInterval(this.#keepAlive));
  }

  /** Settles when the reader has room for more, or is gone. */
  async write(body: object): Promise<void> {
    const response = this.#response;
    if (response.destroyed || response.write(`data: ${JSON.stringify(body)}\n\n`)) return;
    await new Promise<void>((resolve) => {
      const go = () => {
        response.off('drain', go).off('close', go);
        resolve();
      };
      response.on('drain', go).on('close', go);
    });
  }

  end(): void {
    clearInterval(this.#keepAlive);
    this.#response.end();
  }
}
