import type { KnowledgeSource, KnowledgeStats } from '../contracts/api/knowledge/knowledge.js';
import { queryJson } from '../db/json-rows.js';
import { type Page, type PageRequest, readPage } from '../db/pages/page.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { type KnowledgeReader, requireBase } from './base-access.js';

/** The platform's model of embeddings. */
export interface PresentModel {
  model: string;
  /** Null where its provider does not say. */
  dimensions: number | null;
}

/** Whether a source's vectors are of another model than the platform's, or of other dimensions; never without a model (NULL). */
const isStale = (model: string, dimensions: string) => `
  (${model}::text IS NOT NULL AND (model IS DISTINCT FROM ${model} OR (${dimensions}::integer IS NOT NULL AND dim IS DISTINCT FROM ${dimensions})))`;

const COLUMNS = `source_id, chunk_count, tags, created_at, updated_at, title, filename, url, content_type, source_type, metadata, content_hash,
  token_count AS tokens, byte_count AS bytes`;

const columnsOf = (present: PresentModel | undefined) => [present?.model ?? null, present?.dimensions ?? null];

/** A source without the members that it does not have. */
function shownSource(row: object): KnowledgeSource {
  const has = Object.entries({ ...row, status: 'completed' }).filter(([, value]) => value !== null);
  return Object.fromEntries(has) as unknown as KnowledgeSource;
}

/** The sources of a base, newest first. @param present undefined without an embedder */
export async function listSources(
  db: Db,
  reader: KnowledgeReader,
  request: PageRequest & { namespace: string },
  present: PresentModel | undefined,
): Promise<Page<KnowledgeSource>> {
  const { tenantId } = reader;
  const { namespace } = request;
  await db.tenant(tenantId, (tx) => requireBase(tx, reader, namespace));
  const list = {
    key: 'source_id',
    from: 'knowledge_sources WHERE tenant_id = $1 AND namespace = $2',
    orderBy: 'created_at DESC, source_id DESC',
    values: [tenantId, namespace] as [string, ...unknown[]],
  };
  return readPage(db, list, request, async (tx, keys) => {
    const select = `
      SELECT ${COLUMNS}, ${isStale('$4', '$5')} AS stale FROM knowledge_sources
       WHERE tenant_id = $1 AND namespace = $2 AND source_id = ANY ($3) ORDER BY created_at DESC, source_id DESC`;
    return (await queryJson(tx, select, [tenantId, namespace, keys, ...columnsOf(present)])).map(shownSource);
  });
}

/** What a base holds. @throws PlatformError NOT_FOUND */
export async function statsOf(
  tx: Tx,
  reader: KnowledgeReader,
  namespace: string,
  present: PresentModel | undefined,
): Promise<KnowledgeStats> {
  const base = await requireBase(tx, reader, namespace);
  const select = `
    SELECT count(*) AS sources, coalesce(sum(chunk_count), 0)::bigint AS chunks, coalesce(sum(token_count), 0)::bigint AS tokens,
           coalesce(sum(byte_count), 0)::bigint AS bytes,
           coalesce(sum(chunk_count) FILTER (WHERE ${isStale('$3', '$4')}), 0)::bigint AS stale_chunks
      FROM knowledge_sources WHERE tenant_id = $1 AND namespace = $2`;
  type Sums = Pick<KnowledgeStats, 'sources' | 'chunks' | 'tokens' | 'bytes' | 'stale_chunks'>;
  const [sums] = await queryJson<Sums>(tx, select, [reader.tenantId, namespace, ...columnsOf(present)]);
  if (!sums) throw new Error('an aggregate gives one row');
  const { last_ingested_at } = base;
  return {
    ...sums,
    embedding_model: present?.model ?? null,
    dimensions: present?.dimensions ?? null,
    last_ingested_at,
  };
}

/**
 * Deletes a source with its chunks, and what jobs have yet to write of it.
 * @throws PlatformError NOT_FOUND
 */
export async function deleteSource(
  tx: Tx,
  reader: KnowledgeReader,
  namespace: string,
  sourceId: string,
): Promise<void> {
  await requireBase(tx, reader, namespace);
  const key = [reader.tenantId, namespace, sourceId];
  // Documents before the source, in the order in which a writer locks them.
  const canceled = await tx.query(
    `UPDATE knowledge_documents SET state = 'failed', result = 'failed', content = NULL,
            error = '{"code": "SOURCE_DELETED", "message": "The source was deleted before it was taken in."}'
      WHERE tenant_id = $1 AND namespace = $2 AND source_id = $3 AND state = 'pending' RETURNING 1`,
    key,
  );
  const deleted = await tx.query(
    'DELETE FROM knowledge_sources WHERE tenant_id = $1 AND namespace = $2 AND source_id = $3 RETURNING 1',
    key,
  );
  if (canceled.length + deleted.length === 0) {
    throw new PlatformError('NOT_FOUND', `There is no source ${sourceId} in ${namespace}.`);
  }
  await tx.query(
    `UPDATE knowledge_bases SET revision = nextval('knowledge_order'), deletions = deletions + 1 WHERE tenant_id = $1 AND namespace = $2`,
    key.slice(0, 2),
  );
}
