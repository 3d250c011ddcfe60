/** Buffered bytes at which the connection is paused. */
const BUFFERED_BYTES_MAX = 64 * 1024;

/** Control over the connection of a body. */
interface Flow {
  pause(): void;
  resume(): void;
  /** Called when the reader leaves before the end. */
  drop(): void;
}

/** The buffer between a connection and the one reader of a response body. A failure discards what is buffered. */
export class OutboundBody {
  readonly #flow: Flow;
  #buffered: Buffer[] = [];
  #bufferedBytes = 0;
  #ended = false;
  #failure: unknown;
  #wake: () => void = () => undefined;

  constructor(flow: Flow) {
    this.#flow = flow;
  }

  push(chunk: Buffer): void {
    this.#buffered.push(chunk);
    this.#bufferedBytes += chunk.length;
    if (this.#bufferedBytes >= BUFFERED_BYTES_MAX) this.#flow.pause();
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** Only the first failure counts, and none after the end. */
  fail(error: unknown): void {
    if (this.#ended) return;
    this.#failure ??= error;
    this.#buffered = [];
    this.#wake();
  }

  /** Readable once. Leaving the loop early drops the connection. Throws the failure. */
  async *read(): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        if (this.#failure !== undefined) throw this.#failure;
        const chunks = this.#take();
        if (chunks.length > 0) yield chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
        else if (this.#ended) return;
        else await this.#changed();
      }
    } finally {
      if (!this.#ended) this.#flow.drop();
    }
  }

  #changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #take(): Buffer[] {
    const chunks = this.#buffered;
    const wasFull = this.#bufferedBytes >= BUFFERED_BYTES_MAX;
    this.#buffered = [];
    this.#bufferedBytes = 0;
    if (wasFull) this.#flow.resume(); // last, because it may call push() synchronously
    return chunks;
  }
}
