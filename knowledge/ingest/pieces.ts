import { embeddedText } from '../embedder.js';
import type { PendingDocument } from './documents.js';
import type { Prepared } from './prepare-document.js';

/** A document that was read and waits for its vectors. */
export interface Version {
  document: PendingDocument;
  prepared: Extract<Prepared, { kind: 'version' }>;
  vectors: Float32Array[];
}

/** A chunk to be embedded. */
export interface Piece {
  version: Version;
  text: string;
}

/** The chunks of a document as they are embedded. */
export function piecesOf(version: Version): Piece[] {
  const { fields, read } = version.prepared;
  return read.chunks.map(({ heading_path, text }) => ({
    version,
    text: embeddedText(fields.title, heading_path, text),
  }));
}
