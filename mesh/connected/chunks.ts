import type { FrameErrorCode } from '../../contracts/errors.js';
import type { DispatchChunkPayload } from '../../contracts/frames.js';
import { makeWellFormed } from '../../contracts/json-guard.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Artifact, Part } from '../../contracts/parts.js';
import type { BusEvent } from '../../messages/stream/bus.js';

/** More than any model streams, a token in each chunk, also after a resume that sends many again. */
export const CHUNK_PACE = { burst: LIMITS.chunksAtOncePerDispatch, perSecond: LIMITS.chunksPerSecondPerDispatch };

/**
 * What became of a chunk. `gap`: one before it is missing. `overflow`: the output is larger than what is kept. `flood`: too many came
 * too quickly.
 */
export type ChunkVerdict =
  | { kind: 'taken'; events: BusEvent[] }
  | { kind: 'repeat' }
  | { kind: 'gap' }
  | { kind: 'overflow' }
  | { kind: 'flood' };

/** Why a chunk ends its dispatch; undefined where it does not. @param due the number that was next, after the verdict */
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

/** Of a status that is told on. */
export const STATUS_TEXT_CHARS = 4_096;

interface KeptArtifact {
  artifact: Artifact;
  /** Of JSON that came for it. */
  bytes: number;
}

/**
 * The output of one dispatch as it streams in: chunks in order and without gaps, merged into growing artifacts, so that a
 * thousand small chunks cost one part. At most `LIMITS.chunkBytesBufferedPerDispatch` bytes of JSON, with
 * names and metadata, and `LIMITS.chunksBufferedPerDispatch` artifacts are kept; what was told of the status counts too.
 */
export class ChunkLog {
  readonly #ownArtifactId: string;
  readonly #kept = new Map<string, KeptArtifact>();
  #nextSeq = 0;
  #bytes = 0;

  /** @param ownArtifactId the artifact that bare `parts` belong to */
  constructor(ownArtifactId: string) {
    this.#ownArtifactId = ownArtifactId;
  }

  /** Chunks taken so far. */
  get count(): number {
    return this.#nextSeq;
  }

  /** Takes the next chunk; the events are for whoever watches the message. */
  push(chunk: DispatchChunkPayload): ChunkVerdict {
    if (chunk.seq < this.#nextSeq) return { kind: 'repeat' };
    if (chunk.seq > this.#nextSeq) return { kind: 'gap' };
    this.#nextSeq += 1;
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
   * Everything that came, in order of first appearance, as copies. A chunk may end inside a surrogate pair; what is left of
   * one in the end is replaced, anywhere, as JSON for the database must be well-formed.
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
    // What a continuation says about the artifact is not kept, but watchers are told.
    const added = bytesOf(continues ? about : { artifactId, ...about }) + appendParts(kept.artifact.parts, parts);
    kept.bytes += added;
    this.#bytes += added;
    return { kind: 'artifact', artifact, append: continues, last_chunk: last };
  }

  #status(said: string): BusEvent {
    const text = said.slice(0, STATUS_TEXT_CHARS).toWellFormed();
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

/** Plain text that follows plain text continues it. Gives the bytes of JSON that were added. */
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
