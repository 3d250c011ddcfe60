import type { DispatchChunkPayload } from '../contracts/frames.js';
import { makeWellFormed } from '../contracts/json-guard.js';
import { LIMITS } from '../contracts/limits.js';
import type { Artifact, Part } from '../contracts/parts.js';
import type { BusEvent } from '../messages/bus.js';

/** What became of a chunk. `gap`: one before it is missing. `overflow`: the output is larger than what is kept. */
export type ChunkVerdict =
  | { kind: 'taken'; events: BusEvent[] }
  | { kind: 'repeat' }
  | { kind: 'gap' }
  | { kind: 'overflow' };

interface KeptArtifact {
  artifact: Artifact;
  /** Of JSON that came for it. */
  bytes: number;
}

/**
 * The output of one dispatch as it streams in: chunks in order and without gaps, merged into growing artifacts, so that a
 * thousand small chunks cost one part. At most `LIMITS.chunkBytesBufferedPerDispatch` bytes of JSON, with
 * names and metadata, and `LIMITS.chunksBufferedPerDispatch` artifacts are kept.
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
    if (chunk.status_text !== undefined) events.push({ kind: 'status_text', text: chunk.status_text.toWellFormed() });
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
