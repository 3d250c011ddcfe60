import type { Artifact, Part } from '../../contracts/a2a/parts.js';
import type { FrameErrorCode } from '../../contracts/errors.js';
import type { DispatchChunkPayload } from '../../contracts/frames.js';
import { makeWellFormed } from '../../contracts/json-guard.js';
import { LIMITS } from '../../contracts/limits.js';
import type { BusEvent } from '../../messages/stream/bus.js';
import type { ChunkProgress } from './dispatch-progress.js';

/** The rate limit of chunks: more than any model streams at one token per chunk, and enough to repeat chunks after a resume. */
export const CHUNK_PACE = { burst: LIMITS.chunksAtOncePerDispatch, perSecond: LIMITS.chunksPerSecondPerDispatch };

/**
 * Whether a chunk was taken. `repeat`: it was taken before. `gap`: an earlier one is missing. `overflow`: the output is too large. `flood`: the
 * rate is too high.
 */
export type ChunkVerdict =
  | { kind: 'taken'; events: BusEvent[] }
  | { kind: 'repeat' }
  | { kind: 'gap' }
  | { kind: 'overflow' }
  | { kind: 'flood' };

/** Why a chunk fails its dispatch; undefined when it does not. @param due the number that is expected next */
export function whyRefused(
  verdict: ChunkVerdict,
  seq: number,
  due: number,
): [code: FrameErrorCode, message: string] | undefined {
  switch (verdict.kind) {
    case 'taken':
    case 'repeat':
      return undefined;
    case 'gap':
      return ['CHUNK_SEQ_GAP', `Chunk ${seq} came, ${due} was due.`];
    case 'overflow':
      return ['HANDLER_ERROR', `The output is larger than ${LIMITS.chunkBytesBufferedPerDispatch} bytes.`];
    case 'flood':
      return ['RATE_LIMITED', `More than ${CHUNK_PACE.perSecond} chunks a second came. Put more into each.`];
    default:
      return verdict satisfies never;
  }
}

/** Length of a status text that is published. */
export const STATUS_TEXT_CHARS = 4_096;

interface KeptArtifact {
  artifact: Artifact;
  /** Bytes of JSON that came for it. */
  bytes: number;
}

/**
 * The streamed output of one dispatch: chunks in order and without gaps, merged into growing artifacts, so that a thousand small chunks
 * become one part. It holds at most `LIMITS.chunkBytesBufferedPerDispatch` bytes of JSON (names, metadata and status texts included) and
 * `LIMITS.chunksBufferedPerDispatch` artifacts.
 */
export class ChunkLog {
  readonly #ownArtifactId: string;
  readonly #kept = new Map<string, KeptArtifact>();
  #nextSeq = 0;
  #bytes = 0;
  #firstAtMs: number | undefined;
  #lastAtMs = 0;

  /** @param ownArtifactId the artifact that bare `parts` belong to */
  constructor(ownArtifactId: string) {
    this.#ownArtifactId = ownArtifactId;
  }

  /** Continues the output that another node has collected. */
  static continued(ownArtifactId: string, { count, bytes, artifacts, first_at_ms }: ChunkProgress): ChunkLog {
    const log = new ChunkLog(ownArtifactId);
    log.#nextSeq = count;
    log.#bytes = bytes;
    log.#firstAtMs = first_at_ms;
    for (const kept of artifacts) log.#kept.set(kept.artifact.artifactId, kept);
    return log;
  }

  /** What another node needs to continue. */
  progress(): ChunkProgress {
    return {
      count: this.#nextSeq,
      bytes: this.#bytes,
      first_at_ms: this.#firstAtMs,
      artifacts: [...this.#kept.values()],
    };
  }

  /** Chunks taken so far. */
  get count(): number {
    return this.#nextSeq;
  }

  /** When the first and the newest chunk came, in milliseconds since 1970; undefined before the first one. */
  get times(): { firstAtMs: number; lastAtMs: number } | undefined {
    if (this.#firstAtMs === undefined) return undefined;
    return { firstAtMs: this.#firstAtMs, lastAtMs: Math.max(this.#firstAtMs, this.#lastAtMs) };
  }

  /** Takes the next chunk; the events are for followers of the message. */
  push(chunk: DispatchChunkPayload): ChunkVerdict {
    if (chunk.seq < this.#nextSeq) return { kind: 'repeat' };
    if (chunk.seq > this.#nextSeq) return { kind: 'gap' };
    this.#nextSeq += 1;
    this.#lastAtMs = Date.now();
    this.#firstAtMs ??= this.#lastAtMs;
    const events: BusEvent[] = [];
    const last = chunk.last_chunk ?? false;
    if (chunk.artifact) events.push(this.#store(chunk.artifact, chunk.append ?? false, last));
    if (chunk.parts && chunk.parts.length > 0) {
      events.push(this.#store({ artifactId: this.#ownArtifactId, parts: chunk.parts }, chunk.append ?? true, last));
    }
    if (chunk.status_text !== undefined) events.push(this.#status(chunk.status_text));
    return this.#isFull() ? { kind: 'overflow' } : { kind: 'taken', events };
  }

  /**
   * Copies of all artifacts in the order of their first chunks. A chunk may end inside a surrogate pair; half pairs that remain are
   * replaced, because JSON for the database must be well-formed.
   */
  artifacts(): Artifact[] {
    if (this.#kept.size === 0) return [];
    const artifacts = structuredClone([...this.#kept.values()].map(({ artifact }) => artifact));
    makeWellFormed(artifacts);
    return artifacts;
  }

  #store(artifact: Artifact, append: boolean, last: boolean): BusEvent {
    const { artifactId, parts, ...about } = artifact;
    const before = this.#kept.get(artifactId);
    const continues = append && before !== undefined;
    const kept = continues ? before : { artifact: { ...artifact, parts: [] }, bytes: 0 };
    if (!continues) {
      this.#bytes -= before?.bytes ?? 0;
      this.#kept.set(artifactId, kept);
    }
    // The other fields of a chunk that continues an artifact are not stored, but followers get them.
    const added = bytesOf(continues ? about : { artifactId, ...about }) + appendParts(kept.artifact.parts, parts);
    kept.bytes += added;
    this.#bytes += added;
    return { kind: 'artifact', artifact, append: continues, last_chunk: last };
  }

  #status(given: string): BusEvent {
    const text = given.slice(0, STATUS_TEXT_CHARS).toWellFormed();
    this.#bytes += bytesOf(text);
    return { kind: 'status_text', text };
  }

  #isFull(): boolean {
    return this.#bytes > LIMITS.chunkBytesBufferedPerDispatch || this.#kept.size > LIMITS.chunksBufferedPerDispatch;
  }
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Appends parts; plain text continues preceding plain text. @returns bytes of JSON added */
function appendParts(stored: Part[], added: Part[]): number {
  let bytes = 0;
  for (const part of added) {
    const before = stored.at(-1);
    if (part.kind === 'text' && before?.kind === 'text' && !part.metadata && !before.metadata) {
      before.text += part.text;
      bytes += bytesOf(part.text);
    } else {
      stored.push({ ...part });
      bytes += bytesOf(part);
    }
  }
  return bytes;
}
