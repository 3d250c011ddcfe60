import type { DispatchChunkPayload } from '../../contracts/frames.js';
import type { Artifact, Part } from '../../contracts/parts.js';
import type { Output, OutputSource } from './agent-task.js';
import { PART_FORMS, PARTS, STATUS } from './answer-fields.js';
import { isSource, piecesOf } from './output-source.js';
import { ANSWER_BYTES_MAX, sendable, shown, UnsendableError } from './sendable.js';

/** A chunk before it has its place in the order. */
export type ChunkContent = Omit<DispatchChunkPayload, 'seq'>;

const STATUS_TEXT_MAX = 4_096;

/** What a handler streams: one artifact that grows, and what it says about its work. */
export class TaskOutput {
  /** All that was streamed. */
  readonly artifact: Artifact;
  readonly #send: (content: ChunkContent) => Promise<void>;
  #bytes = 0;
  #failure: unknown = null;

  /**
   * @param artifactId as the mesh names what has no name, so that a watcher sees one output
   * @param send settles when there is room for more
   */
  constructor(artifactId: string, send: (content: ChunkContent) => Promise<void>) {
    this.artifact = { artifactId, parts: [] };
    this.#send = send;
  }

  /** Why a piece could not be sent; null while all could. It fails the task, whatever the handler makes of it. */
  get failure(): unknown {
    return this.#failure;
  }

  /** @throws UnsendableError for a piece that cannot be sent, or when the whole grows over a frame's size */
  stream(output: Output | OutputSource): Promise<void> {
    return this.#guarded(isSource(output) ? this.#addAll(output) : this.#add(() => this.#chunkOf(output)));
  }

  /** @throws UnsendableError for anything but text */
  status(text: string): Promise<void> {
    return this.#guarded(this.#add(() => ({ status_text: sendable(text, STATUS).slice(0, STATUS_TEXT_MAX) })));
  }

  /** The failure of a piece is kept: a handler that does not await it must not end the process. */
  #guarded(sending: Promise<void>): Promise<void> {
    const sent: Promise<void> = sending.catch((error: unknown) => {
      if (this.#failure !== null && error === this.#failure) sent.catch(() => undefined);
      throw error;
    });
    return sent;
  }

  async #addAll(source: OutputSource): Promise<void> {
    for await (const piece of piecesOf(source)) await this.#add(() => this.#chunkOf(piece));
  }

  /** @param contentOf null is nothing to send */
  async #add(contentOf: () => ChunkContent | null): Promise<void> {
    try {
      const content = this.#failure === null ? contentOf() : null;
      if (content) await this.#send(content);
    } catch (error) {
      this.#failure ??= error;
    }
    if (this.#failure !== null) throw this.#failure;
  }

  #chunkOf(output: Output): ChunkContent | null {
    const parts = partsOf(output);
    if (parts.length === 0) return null;
    this.#bytes += Buffer.byteLength(JSON.stringify(parts));
    if (this.#bytes > ANSWER_BYTES_MAX) {
      throw new UnsendableError(
        `an answer has at most ${ANSWER_BYTES_MAX} bytes; shorten it, or give the URI of a file`,
      );
    }
    const { artifactId, parts: whole } = this.artifact;
    const append = whole.length > 0;
    for (const part of parts) appendPart(whole, part);
    return { artifact: { artifactId, parts }, append };
  }
}

/** Empty text is no piece: models send it between others. */
function partsOf(output: Output): Part[] {
  if (output === '') return [];
  // Most pieces are text: a look for the one thing that can be wrong with it is all that they cost.
  if (typeof output === 'string' && !output.includes('\0')) return [{ kind: 'text', text: output }];
  if (typeof output === 'string') return sendable([{ kind: 'text', text: output }], PARTS);
  if (typeof output === 'object' && output !== null) return sendable([output].flat(), PARTS);
  throw new UnsendableError(
    `a piece of the answer is ${shown(output)}; give text, a part or parts, where ${PART_FORMS}`,
  );
}

/** Streamed pieces of plain text become one part. */
function appendPart(parts: Part[], part: Part): void {
  const last = parts.at(-1);
  const joins = last?.kind === 'text' && part.kind === 'text' && !last.metadata && !part.metadata;
  if (joins) parts[parts.length - 1] = { kind: 'text', text: last.text + part.text };
  else parts.push(part);
}
