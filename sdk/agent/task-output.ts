import type { DispatchChunkPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Artifact, Part } from '../../contracts/parts.js';
import type { Output } from './agent-task.js';

/** A chunk before it has its place in the order. */
export type ChunkContent = Omit<DispatchChunkPayload, 'seq'>;

const STATUS_TEXT_MAX = 4_096;

/** What a handler streams: one artifact that grows, and what it says about its work. */
export class TaskOutput {
  /** All that was streamed. */
  readonly artifact: Artifact;
  readonly #send: (content: ChunkContent) => Promise<void>;
  #bytes = 0;

  /**
   * @param artifactId as the mesh names what has no name, so that a watcher sees one output
   * @param send settles when there is room for more
   */
  constructor(artifactId: string, send: (content: ChunkContent) => Promise<void>) {
    this.artifact = { artifactId, parts: [] };
    this.#send = send;
  }

  /** @throws Error when the whole grows over a frame's size */
  async stream(output: Output | AsyncIterable<Output>): Promise<void> {
    if (typeof output === 'object' && Symbol.asyncIterator in output) {
      for await (const piece of output) await this.#add(piece);
    } else await this.#add(output);
  }

  async status(text: string): Promise<void> {
    await this.#send({ status_text: text.slice(0, STATUS_TEXT_MAX) });
  }

  async #add(output: Output): Promise<void> {
    const parts: Part[] = typeof output === 'string' ? [{ kind: 'text', text: output }] : [output].flat();
    this.#bytes += Buffer.byteLength(JSON.stringify(parts));
    if (this.#bytes > LIMITS.frameBytes) throw new Error(`an answer has at most ${LIMITS.frameBytes} bytes`);
    const { artifactId, parts: whole } = this.artifact;
    const append = whole.length > 0;
    for (const part of parts) appendPart(whole, part);
    await this.#send({ artifact: { artifactId, parts }, append });
  }
}

/** Streamed pieces of plain text become one part. */
function appendPart(parts: Part[], part: Part): void {
  const last = parts.at(-1);
  const joins = last?.kind === 'text' && part.kind === 'text' && !last.metadata && !part.metadata;
  if (joins) parts[parts.length - 1] = { kind: 'text', text: last.text + part.text };
  else parts.push(part);
}
