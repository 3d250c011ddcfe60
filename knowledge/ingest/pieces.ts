import { embeddedText } from '../embedder.js';
import type { PendingDocument } from './documents.js';
import type { Prepared } from './prepare-document.js';

/** A document that was read and waits for its vectors. */
export interface PreparedDocument {
  pending: PendingDocument;
  prepared: Extract<Prepared, { kind: 'version' }>;
  vectors: Float32Array[];
}

/** A chunk to be embedded. */
export interface Piece {
  document: PreparedDocument;
  text: string;
}

/** The chunks of documents that wait for their vectors. Their texts are made when they are taken: a document may have 50,000. */
export class PieceQueue {
  #documents: { document: PreparedDocument; taken: number }[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(document: PreparedDocument): void {
    this.#documents.push({ document, taken: 0 });
    this.#size += document.prepared.read.chunks.length;
  }

  /** Takes the next chunks, those of several documents where one has fewer. */
  take(count: number): Piece[] {
    const pieces: Piece[] = [];
    while (pieces.length < count && this.#documents[0]) {
      const [first] = this.#documents;
      const { fields, read } = first.document.prepared;
      const end = Math.min(read.chunks.length, first.taken + count - pieces.length);
      for (const { heading_path, text } of read.chunks.slice(first.taken, end)) {
        pieces.push({ document: first.document, text: embeddedText(fields.title, heading_path, text) });
      }
      first.taken = end;
      if (end === read.chunks.length) this.#documents.shift();
    }
    this.#size -= pieces.length;
    return pieces;
  }
}
