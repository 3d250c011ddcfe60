import type { DispatchChunkPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';

/** Where frames go; null while there is no connection. */
export interface FrameSink {
  readonly bufferedBytes: number;
  /** Whoever owns the sink flushes every outbox again once the network took the frame. */
  send(type: string, payload: object, inReplyTo: string): void;
}

interface Held {
  chunk: DispatchChunkPayload;
  bytes: number;
}

const HELD_CHUNKS_MAX = LIMITS.chunksBufferedPerDispatch;
const HELD_BYTES_MAX = LIMITS.chunkBytesBufferedPerDispatch;

/**
 * The chunks of one dispatch, in order and without gaps. The newest ones that were sent (256, or 1 MiB) are held, because a
 * connection that breaks does not say what arrived; after a resume they go out again and the mesh drops repeats.
 */
export class Outbox {
  readonly #frameId: string;
  #sink: FrameSink | null = null;
  #held: Held[] = [];
  /** How many of `#held`, from the front, were sent on the present connection. */
  #sent = 0;
  #heldBytes = 0;
  #unsentBytes = 0;
  #nextSeq = 0;
  #waiting: (() => void)[] = [];

  /** @param frameId the dispatch frame's id */
  constructor(frameId: string) {
    this.#frameId = frameId;
  }

  /** Chunks made so far. */
  get count(): number {
    return this.#nextSeq;
  }

  /** Every chunk was handed to the connection. */
  get isFlushed(): boolean {
    return this.#sink !== null && this.#sent === this.#held.length;
  }

  /** The sequence number after which chunks will be sent (again) when a resume succeeds; -1 is from the first on. */
  get resumesAfterSeq(): number {
    return (this.#held[0]?.chunk.seq ?? this.#nextSeq) - 1;
  }

  /**
   * Adds a chunk. Settles when there is room for more.
   * @throws Error when 1 MiB waits unsent
   */
  async add(content: Omit<DispatchChunkPayload, 'seq'>): Promise<void> {
    const bytes = Buffer.byteLength(JSON.stringify(content));
    if (this.#unsentBytes + bytes > HELD_BYTES_MAX)
      throw new Error('output is made faster than it is sent: await stream()');
    this.#held.push({ chunk: { seq: this.#nextSeq, ...content }, bytes });
    this.#nextSeq += 1;
    this.#heldBytes += bytes;
    this.#unsentBytes += bytes;
    this.flush();
    if (this.#unsentBytes > LIMITS.bufferedBytesSoft) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Takes a connection: a new one sends all that is held once more. */
  attach(sink: FrameSink | null): void {
    this.#sink = sink;
    this.#sent = 0;
    this.#unsentBytes = this.#heldBytes;
    this.flush();
  }

  /** Sends what the connection has room for. */
  flush(): void {
    const sink = this.#sink;
    while (sink && sink.bufferedBytes < LIMITS.bufferedBytesSoft) {
      const next = this.#held[this.#sent];
      if (!next) break;
      this.#sent += 1;
      this.#unsentBytes -= next.bytes;
      sink.send('dispatch_chunk', next.chunk, this.#frameId);
    }
    this.#forgetOldest();
    if (this.#unsentBytes <= LIMITS.bufferedBytesSoft) this.release();
  }

  /** Lets whoever waits for room go on. */
  release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #forgetOldest(): void {
    while (this.#sent > 0 && (this.#held.length > HELD_CHUNKS_MAX || this.#heldBytes > HELD_BYTES_MAX)) {
      this.#heldBytes -= this.#held.shift()?.bytes ?? 0;
      this.#sent -= 1;
    }
  }
}
