import type { SourceErrorCode } from '../../contracts/api/knowledge/knowledge.js';
import type { Chunk, Chunking } from '../chunk/chunks.js';
import type { TypeHints } from '../parse/detect-type.js';

/** A document for a reading thread: its bytes, or what was extracted from them before. */
export type ReadRequest = { chunking: Chunking } & (
  | { content: Uint8Array; hints: TypeHints }
  | { extracted: Uint8Array }
);

/** What a reading thread made of a document. */
export interface ReadDocument {
  /** The media type that was found; undefined for what was extracted before. */
  contentType?: string;
  /** What the document calls itself. */
  title?: string;
  /** The text with its outline, gzip of JSON: for `ReadRequest.extracted` later. */
  extracted: Uint8Array;
  chunks: Chunk[];
}

/** How reading a document ended. */
export type ReadAnswer = { ok: true; read: ReadDocument } | { ok: false; code: SourceErrorCode; message: string };
