import type { DispatchChunkPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';

/** Sends frames on the current connection. */
export interface FrameSink {
  readonly bufferedBytes: number;
  /** When the frame was written to the network, the owner of the sink flushes every buffer again. */
  send(type: string, payload: object, inReplyTo: string): void;
}

interface BufferedChunk {
  chunk: DispatchChunkPayload;
  bytes: number;
}

const KEPT_CHUNKS_MAX = LIMITS.chunksKeptPerDispatch;
const BUFFERED_BYTES_MAX = LIMITS.chunkBytesBufferedPerDispatch;

/**
 * The chunks of one dispatch, in order and without gaps. Keeps the newest sent chunks (up to 4,096 and 1 MiB), because a broken connection
 * does not tell which chunks arrived. After a resume the kept chunks are sent again, and the mesh drops repeats.
 */
export class ChunkBuffer {
  readonly #frameId: string;
  #sink: FrameSink | null = null;
  #chunks: BufferedChunk[] = [];
  /** How many of `#chunks`, from the front, were sent on the current connection. */
  #sent = 0;
  #bufferedBytes = 0;
  #unsentBytes = 0;
  #nextSeq = 0;
  #waitingForRoom: (() => void)[] = [];

  /** @param frameId the dispatch frame's id */
  constructor(frameId: string) {
    this.#frameId = frameId;
  }

  /** Number of chunks so far. */
  get count(): number {
    return this.#nextSeq;
  }

  /** Whether every chunk was sent on the current connection. */
  get isFlushed(): boolean {
    return this.#sink !== null && this.#sent === this.#chunks.length;
  }

  /** The sequence number after which chunks are sent again after a resume; -1 means from the first. */
  get resumeAfterSeq(): number {
    return (this.#chunks[0]?.chunk.seq ?? this.#nextSeq) - 1;
  }

  /**
   * Adds a chunk. Resolves when at most 256 KiB are unsent.
   * @throws Error when more than 1 MiB would be unsent
   */
  async add(content: Omit<DispatchChunkPayload, 'seq'>): Promise<void> {
    const bytes = Buffer.byteLength(JSON.stringify(content));
    if (this.#unsentBytes + bytes > BUFFERED_BYTES_MAX)
      throw new Error('output is produced faster than it is sent: await stream()');
    this.#chunks.push({ chunk: { seq: this.#nextSeq, ...content }, bytes });
    this.#nextSeq += 1;
    this.#bufferedBytes += bytes;
    this.#unsentBytes += bytes;
    this.flush();
    if (this.#unsentBytes > LIMITS.bufferedBytesSoft)
      await new Promise<void>((resolve) => this.#waitingForRoom.push(resolve));
  }

  /** Sets the connection, or null when it is lost. A new connection sends all buffered chunks again. */
  attach(sink: FrameSink | null): void {
    this.#sink = sink;
    this.#sent = 0;
    this.#unsentBytes = this.#bufferedBytes;
    this.flush();
  }

  /** Sends chunks until the connection's buffer is full. */
  flush(): void {
    const sink = this.#sink;
    while (sink && sink.bufferedBytes < LIMITS.bufferedBytesSoft) {
      const next = this.#chunks[this.#sent];
      if (!next) break;
      this.#sent += 1;
      this.#unsentBytes -= next.bytes;
      sink.send('dispatch_chunk', next.chunk, this.#frameId);
    }
    this.#dropOldest();
    if (this.#unsentBytes <= LIMITS.bufferedBytesSoft) this.release();
  }

  /** Resolves all waiting `add` calls. */
  release(): void {
    for (const resolve of this.#waitingForRoom.splice(0)) resolve();
  }

  #dropOldest(): void {
    while (this.#sent > 0 && (this.#chunks.length > KEPT_CHUNKS_MAX || this.#bufferedBytes > BUFFERED_BYTES_MAX)) {
      this.#bufferedBytes -= this.#chunks.shift()?.bytes ?? 0;
      this.#sent -= 1;
    }
  }
}
