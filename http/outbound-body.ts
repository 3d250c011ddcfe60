/** Bytes that may wait for their reader before the connection is paused. */
const WAITING_BYTES_MAX = 64 * 1024;

/** What a body asks of the connection that it comes over. */
interface Flow {
  pause(): void;
  resume(): void;
  /** The reader has left: nothing where the answer is complete. */
  drop(): void;
}

/** The body of an answer on its way from the connection to its one reader. An error takes the place of all that still waits. */
export class OutboundBody {
  readonly #flow: Flow;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #ended = false;
  #failure: unknown;
  #wake: () => void = () => undefined;

  constructor(flow: Flow) {
    this.#flow = flow;
  }

  push(chunk: Buffer): void {
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= WAITING_BYTES_MAX) this.#flow.pause();
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** The first failure counts; none does once all has come. */
  fail(error: unknown): void {
    if (this.#ended) return;
    this.#failure ??= error;
    this.#waiting = [];
    this.#wake();
  }

  /** To be read once; leaving it before its end drops the connection. Throws what the body failed with. */
  async *read(): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        if (this.#failure !== undefined) throw this.#failure;
        const chunks = this.#take();
        if (chunks.length > 0) yield chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
        else if (this.#ended) return;
        else await this.#change();
      }
    } finally {
      if (!this.#ended) this.#flow.drop();
    }
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #take(): Buffer[] {
    const chunks = this.#waiting;
    const wasFull = this.#waitingBytes >= WAITING_BYTES_MAX;
    this.#waiting = [];
    this.#waitingBytes = 0;
    if (wasFull) this.#flow.resume(); // last: it may push at once
    return chunks;
  }
}
