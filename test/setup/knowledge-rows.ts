import { type Embedder, embeddedText } from '../../knowledge/embedder.js';
import { createKnowledgeSearch, type KnowledgeSearch, type SearchOptions } from '../../knowledge/search/search.js';
import type { KnowledgeQuery, SearchScope } from '../../knowledge/search-query.js';
import { createLogger } from '../../runtime/logger.js';
import { cleanUp } from './clean-up.js';
import type { FreshDatabase } from './database.js';
import { WORD_MODEL, wordVector } from './embeddings.js';

/** A search of a test's database; see `ask`. */
export async function knowledgeSearch(
  database: FreshDatabase,
  embedder: Embedder | undefined,
  more: Partial<Pick<SearchOptions, 'cacheMb' | 'dropEveryMs' | 'exactChunksMax'>> = {},
): Promise<KnowledgeSearch> {
  const log = createLogger({ level: 'silent' });
  const options = { db: database.db(), databaseUrl: database.url, embedder, cacheMb: 64, log, ...more };
  const search = await createKnowledgeSearch(options);
  cleanUp(() => search.close());
  return search;
}

/** Asks with usual settings: five results, no least score. */
export function ask(search: KnowledgeSearch, scope: SearchScope, query: string, more: Partial<KnowledgeQuery> = {}) {
  return search.search(scope, { query, topK: 5, minScore: 0, ...more });
}

export async function insertBase(database: FreshDatabase, tenantId: string, namespace: string): Promise<void> {
  await database.query(
    `INSERT INTO knowledge_bases (tenant_id, namespace, display_name, description, visibility, config, created_by)
    VALUES ($1, $2, $2, '', 'tenant', '{}', 'cred_1')`,
    [tenantId, namespace],
  );
}

/** A source to put on the record. */
export interface TestSource {
  tenantId: string;
  namespace: string;
  sourceId: string;
  texts: string[];
  title?: string;
  heading?: string[];
  tags?: string[];
  metadata?: Record<string, unknown>;
  /** Null: without vectors. `WORD_MODEL` by default. */
  model?: string | null;
  /** Instead of `wordVector`. */
  vectors?: Float32Array[];
}

/** Writes a source and its chunks, in place of those of the same id, as one transaction. */
export async function insertSource(database: FreshDatabase, source: TestSource): Promise<void> {
  const { tenantId, namespace, sourceId, texts, title = sourceId, heading = [], tags = [], metadata = {} } = source;
  const model = source.model === undefined ? WORD_MODEL : source.model;
  const vectors = source.vectors ?? texts.map((text) => wordVector(embeddedText(title, heading, text)));
  const bytes = vectors.map((vector) => Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength));
  await database.db().tenant(tenantId, async (tx) => {
    await tx.query('DELETE FROM knowledge_sources WHERE namespace = $1 AND source_id = $2', [namespace, sourceId]);
    await tx.query(
      `WITH source AS (
      INSERT INTO knowledge_sources (tenant_id, namespace, source_id, place, version, revision, title, filename, content_type, tags, metadata,
        content_hash, chunking, extracted, chunk_count, token_count, byte_count, model, dim)
      VALUES ($1, $2, $3, nextval('knowledge_order'), currval('knowledge_order'), currval('knowledge_order'), $4, $3 || '.txt', 'text/plain', $5, $6, 'hash', '', '', $7, 0, 0, $8, $9)
    ), chunks AS (
      INSERT INTO knowledge_chunks (tenant_id, namespace, source_id, ordinal, chunk_id, text, char_start, char_end, page_start, page_end,
        heading_path, tokens, embedding, dim, model)
      SELECT $1, $2, $3, c.n - 1, gen_random_uuid()::text, c.text, 10 * c.n, 10 * c.n + 9, c.n, c.n, $10, 5,
        CASE WHEN $8::text IS NOT NULL THEN c.embedding END, $9::int, $8
      FROM unnest($11::text[], $12::bytea[]) WITH ORDINALITY AS c (text, embedding, n)
    )
    UPDATE knowledge_bases SET revision = nextval('knowledge_order') WHERE tenant_id = $1 AND namespace = $2`,
      [
        tenantId,
        namespace,
        sourceId,
        title,
        tags,
        JSON.stringify(metadata),
        texts.length,
        model,
        model === null ? null : (vectors[0]?.length ?? 0),
        heading,
        texts,
        bytes,
      ],
    );
  });
}

/** Deletes a source as the platform does: with its chunks, and a new revision. */
export async function deleteSource(
  database: FreshDatabase,
  tenantId: string,
  namespace: string,
  sourceId: string,
): Promise<void> {
  await database.query(
    `WITH gone AS (DELETE FROM knowledge_sources WHERE tenant_id = $1 AND namespace = $2 AND source_id = $3)
    UPDATE knowledge_bases SET revision = nextval('knowledge_order'), deletions = deletions + 1 WHERE tenant_id = $1 AND namespace = $2`,
    [tenantId, namespace, sourceId],
  );
}
