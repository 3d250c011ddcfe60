import type { SearchResult } from '../../contracts/api/knowledge/knowledge-query.js';
import type { Tx } from '../../db/pool.js';
import type { FoundChunk } from './searcher.js';

interface ResultRow {
  found: number;
  namespace: string;
  source_id: string;
  chunk_id: string;
  text: string;
  title: string;
  tags: string[];
  metadata: Record<string, unknown>;
  url: string | null;
  filename: string | null;
  page_start: number | null;
  page_end: number | null;
  heading_path: string[];
  char_start: number;
  char_end: number;
}

const rounded = (score: number): number => Math.round(score * 10_000) / 10_000;

function toResult(row: ResultRow, { score, semantic, lexical }: FoundChunk): SearchResult {
  const { text, source_id, tags, chunk_id, namespace, title, metadata, heading_path, char_start, char_end } = row;
  return {
    text,
    source_id,
    score: rounded(Math.max(0, score)),
    tags,
    chunk_id,
    namespace,
    scores: {
      ...(semantic !== undefined && { semantic: rounded(semantic) }),
      ...(lexical !== undefined && { lexical: rounded(lexical) }),
    },
    title,
    metadata,
    citation: {
      ...(row.url !== null && { url: row.url }),
      ...(row.filename !== null && { filename: row.filename }),
      ...(row.page_start !== null && { page_start: row.page_start }),
      ...(row.page_end !== null && { page_end: row.page_end }),
      heading_path,
      char_start,
      char_end,
    },
  };
}

/**
 * Reads the chunks that a search found, from the sources as they are now: a chunk of a source that was deleted or replaced meanwhile, or whose
 * knowledge base was, is missing.
 */
export async function readResults(tx: Tx, tenantId: string, found: readonly FoundChunk[]): Promise<SearchResult[]> {
  const rows = await tx.query<ResultRow>(
    `SELECT f.found::int, namespace, source_id, c.chunk_id, c.text, s.title, s.tags, s.metadata, s.url, s.filename,
      c.page_start, c.page_end, c.heading_path, c.char_start, c.char_end
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::int[]) WITH ORDINALITY
      AS f (namespace, source_id, place, ordinal, found)
    JOIN knowledge_sources s USING (namespace, source_id, place)
    JOIN knowledge_bases b USING (tenant_id, namespace)
    JOIN knowledge_chunks c USING (tenant_id, namespace, source_id, ordinal)
    WHERE tenant_id = $1 AND b.deleted_at IS NULL
    ORDER BY f.found`,
    [
      tenantId,
      found.map(({ namespace }) => namespace),
      found.map(({ sourceId }) => sourceId),
      found.map(({ place }) => place),
      found.map(({ ordinal }) => ordinal),
    ],
    'knowledge_results',
  );
  return rows.map((row) => toResult(row, found[row.found - 1] as FoundChunk));
}
