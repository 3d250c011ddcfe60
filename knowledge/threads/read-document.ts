import { gunzipSync, gzipSync } from 'node:zlib';
import { type Chunk, chunksOf } from '../chunk/chunks.js';
import { PARSE_BOUNDS } from '../parse/bounds.js';
import type { Extracted } from '../parse/extracted.js';
import { parseDocument } from '../parse/parse.js';
import { ParseError } from '../parse/parse-error.js';
import type { ReadDocument, ReadRequest } from './reading.js';

/** Our own data; bounded all the same, because a bound costs nothing. */
const EXTRACTED_BYTES_MAX = 512 * 1024 * 1024;

function cut(extracted: Extracted, request: ReadRequest): Chunk[] {
  const chunks: Chunk[] = [];
  for (const chunk of chunksOf(extracted, request.chunking)) {
    chunks.push(chunk);
    if (chunks.length > PARSE_BOUNDS.chunks) {
      throw new ParseError('TOO_LARGE', `The document makes more than ${PARSE_BOUNDS.chunks} chunks.`);
    }
  }
  if (chunks.length === 0) throw new ParseError('EMPTY', 'The document has no text.');
  return chunks;
}

/** Reads a document and cuts it. @throws ParseError */
export async function readDocument(request: ReadRequest): Promise<ReadDocument> {
  if ('extracted' in request) {
    const { extracted } = request;
    const stored = JSON.parse(gunzipSync(extracted, { maxOutputLength: EXTRACTED_BYTES_MAX }).toString()) as Extracted;
    return { extracted, chunks: cut(stored, request), ...(stored.title && { title: stored.title }) };
  }
  const { extracted, contentType } = await parseDocument(request.content, request.hints);
  const chunks = cut(extracted, request);
  const stored = gzipSync(JSON.stringify(extracted), { level: 1 });
  return { contentType, extracted: stored, chunks, ...(extracted.title && { title: extracted.title }) };
}
