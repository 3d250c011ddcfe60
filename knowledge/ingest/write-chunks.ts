import type { Tx } from '../../db/pool.js';
import { newId } from '../../runtime/ids.js';
import type { Chunk } from '../chunk/chunks.js';
import type { VectorRow } from '../search/rank/database-vectors.js';

/** Chunks of one statement. */
const CHUNKS_AT_ONCE = 500;

/** The chunks of a version. */
interface NewChunks {
  chunks: readonly Chunk[];
  /** One for each chunk; none without an embedder. */
  vectors: readonly Float32Array[] | undefined;
  model: string | null;
  dim: number | null;
}

/** Writes the chunks of a new version. */
export async function insertChunks(
  tx: Tx,
  target: { tenant_id: string; namespace: string; source_id: string },
  { chunks, vectors, model, dim }: NewChunks,
): Promise<void> {
  const insert = `
    INSERT INTO knowledge_chunks (tenant_id, namespace, source_id, ordinal, chunk_id, text, char_start, char_end, page_start, page_end,
                                  heading_path, tokens, embedding, dim, model)
    SELECT $1, $2, $3, c.ordinal, c.chunk_id, c.text, c.char_start, c.char_end, c.page_start, c.page_end,
           ARRAY (SELECT jsonb_array_elements_text(c.heading_path)), c.tokens, c.embedding, $13, $14
      FROM unnest($4::integer[], $5::text[], $6::text[], $7::integer[], $8::integer[], $9::integer[], $10::integer[], $11::jsonb[],
                  $12::integer[], $15::bytea[])
           AS c (ordinal, chunk_id, text, char_start, char_end, page_start, page_end, heading_path, tokens, embedding)`;
  for (let from = 0; from < chunks.length; from += CHUNKS_AT_ONCE) {
    const part = chunks.slice(from, from + CHUNKS_AT_ONCE);
    await tx.query(insert, [
      target.tenant_id,
      target.namespace,
      target.source_id,
      part.map((_, index) => from + index),
      part.map(() => newId('chk')),
      part.map(({ text }) => text),
      part.map(({ char_start }) => char_start),
      part.map(({ char_end }) => char_end),
      part.map(({ page_start }) => page_start),
      part.map(({ page_end }) => page_end),
      part.map(({ heading_path }) => JSON.stringify(heading_path)),
      part.map(({ tokens }) => tokens),
      dim,
      model,
      part.map((_, index) => bytesOf(vectors?.[from + index])),
    ]);
  }
}

/** The version of the chunks that a document of a job writes: its place in the order of all documents, which no other has. */
export const chunksVersion = ({ place }: { place: number }): number => place;

/** The vectors of a version that was written. */
export function vectorRows(
  document: { source_id: string; place: number },
  { vectors = [], model }: Pick<NewChunks, 'vectors' | 'model'>,
): VectorRow[] {
  const { source_id } = document;
  const version = chunksVersion(document);
  return vectors.map((vector, ordinal) => ({ source_id, ordinal, version, model, embedding: bytesOf(vector) }));
}

function bytesOf(vector: Float32Array | undefined): Buffer | null {
  return vector ? Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength) : null;
}
