import type { Artifact, Part } from '../../contracts/a2a/parts.js';
import type { DispatchChunkPayload } from '../../contracts/frames.js';
import type { Output, OutputSource } from './agent-task.js';
import { PART_FORMS, PARTS, STATUS } from './answer-fields.js';
import { chunksOf, isSource } from './output-source.js';
import { ANSWER_BYTES_MAX, sendable, shown, UnsendableError } from './sendable.js';

/** A chunk without its sequence number. */
export type ChunkContent = Omit<DispatchChunkPayload, 'seq'>;

const STATUS_TEXT_MAX = 4_096;

/** The streamed output of a handler: one growing artifact, and status texts. */
export class TaskOutput {
  /** Everything that was streamed so far. */
  readonly artifact: Artifact;
  readonly #send: (content: ChunkContent) => Promise<void>;
  readonly #signal: AbortSignal;
  #bytes = 0;
  #failure: unknown = null;

  /**
   * @param artifactId the id that the mesh gives to unnamed output, so that a reader of the stream sees one output
   * @param send resolves when the connection accepts more
   * @param signal aborted when nobody reads the output any more
   */
  constructor(artifactId: string, send: (content: ChunkContent) => Promise<void>, signal: AbortSignal) {
    this.#signal = signal;
    this.artifact = { artifactId, parts: [] };
    this.#send = send;
  }

  /** Why a chunk could not be sent; null if none failed. It fails the task even when the handler catches the error. */
  get failure(): unknown {
    return this.#failure;
  }

  /** @throws UnsendableError for a chunk that cannot be sent, or when the whole output exceeds the size of a frame */
  stream(output: Output | OutputSource): Promise<void> {
    return this.#handled(isSource(output) ? this.#addAll(output) : this.#add(() => this.#contentOf(output)));
  }

  /** @throws UnsendableError for anything but text */
  status(text: string): Promise<void> {
    return this.#handled(this.#add(() => ({ status_text: sendable(text, STATUS).slice(0, STATUS_TEXT_MAX) })));
  }

  /** Marks the rejection as handled, because `failure` reports it: a handler that does not await `stream` must not crash the process. */
  #handled(sending: Promise<void>): Promise<void> {
    const sent: Promise<void> = sending.catch((error: unknown) => {
      if (this.#failure !== null && error === this.#failure) sent.catch(() => undefined);
      throw error;
    });
    return sent;
  }

  async #addAll(source: OutputSource): Promise<void> {
    for await (const chunk of chunksOf(source)) {
      this.#signal.throwIfAborted(); // leaves the source, which then ends: a model is not paid for what nobody reads
      await this.#add(() => this.#contentOf(chunk));
    }
  }

  /** @param makeContent returns null when there is nothing to send */
  async #add(makeContent: () => ChunkContent | null): Promise<void> {
    try {
      const content = this.#failure === null ? makeContent() : null;
      if (content) await this.#send(content);
    } catch (error) {
      this.#failure ??= error;
    }
    if (this.#failure !== null) throw this.#failure;
  }

  #contentOf(output: Output): ChunkContent | null {
    const parts = partsOf(output);
    if (parts.length === 0) return null;
    this.#bytes += Buffer.byteLength(JSON.stringify(parts));
    if (this.#bytes > ANSWER_BYTES_MAX) {
      throw new UnsendableError(
        `an answer has at most ${ANSWER_BYTES_MAX} bytes; shorten it, or send the URI of a file`,
      );
    }
    const { artifactId, parts: allParts } = this.artifact;
    const append = allParts.length > 0;
    for (const part of parts) appendPart(allParts, part);
    return { artifact: { artifactId, parts }, append };
  }
}

/** Empty text is dropped: models send it between other chunks. */
function partsOf(output: Output): Part[] {
  if (output === '') return [];
  // Most chunks are plain text, in which only NUL is invalid: skip the full check.
  if (typeof output === 'string' && !output.includes('\0')) return [{ kind: 'text', text: output }];
  if (typeof output === 'string') return sendable([{ kind: 'text', text: output }], PARTS);
  if (typeof output === 'object' && output !== null) return sendable([output].flat(), PARTS);
  throw new UnsendableError(
    `a chunk of the answer is ${shown(output)}; send text, a part or parts, where ${PART_FORMS}`,
  );
}

/** Adjacent text parts without metadata are merged into one. */
function appendPart(parts: Part[], part: Part): void {
  const last = parts.at(-1);
  const joins = last?.kind === 'text' && part.kind === 'text' && !last.metadata && !part.metadata;
  if (joins) parts[parts.length - 1] = { kind: 'text', text: last.text + part.text };
  else parts.push(part);
}
