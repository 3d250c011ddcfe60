import type { SearchFilters } from '../../../contracts/api/knowledge/knowledge-query.js';
import type { Tx } from '../../../db/pool.js';

/** A source as its row is now. */
export interface SourceRow {
  source_id: string;
  version: number;
  model: string | null;
  chunk_count: number;
}

/** A chunk as it is indexed. `embedding` is null where its model is not the one that was asked for. */
export interface ChunkRow {
  source_id: string;
  version: number;
  model: string | null;
  ordinal: number;
  title: string;
  heading_path: string[];
  text: string;
  embedding: Buffer | null;
}

/** The revisions of knowledge bases; those that do not exist are missing. */
export async function readRevisions(
  tx: Tx,
  tenantId: string,
  namespaces: readonly string[],
): Promise<Map<string, number>> {
  const rows = await tx.query<{ namespace: string; revision: number }>(
    `SELECT namespace, revision FROM knowledge_bases WHERE tenant_id = $1 AND namespace = ANY ($2) AND deleted_at IS NULL`,
    [tenantId, namespaces],
    'knowledge_revisions',
  );
  return new Map(rows.map(({ namespace, revision }) => [namespace, revision]));
}

/** Those of the knowledge bases that do not exist any more, and those of tenants that were deleted. */
export async function readDeleted(
  tx: Tx,
  keys: readonly { tenantId: string; namespace: string }[],
): Promise<{ tenantId: string; namespace: string }[]> {
  const rows = await tx.query<{ tenant_id: string; namespace: string }>(
    `SELECT tenant_id, namespace FROM unnest($1::text[], $2::text[]) AS k (tenant_id, namespace) WHERE NOT EXISTS (
      SELECT FROM knowledge_bases b JOIN tenants t USING (tenant_id)
       WHERE b.tenant_id = k.tenant_id AND b.namespace = k.namespace AND b.deleted_at IS NULL AND t.deleted_at IS NULL)`,
    [keys.map(({ tenantId }) => tenantId), keys.map(({ namespace }) => namespace)],
    'knowledge_deleted',
  );
  return rows.map(({ tenant_id, namespace }) => ({ tenantId: tenant_id, namespace }));
}

/** What an index has seen of its knowledge base. */
export interface SeenState {
  revision: number;
  /** Sources that were deleted from it so far. */
  deletions: number;
}

/** A knowledge base as it is now, for an index that has seen an earlier state of it. */
export interface ChangedSources extends SeenState {
  /** Whether `sources` are all that there are. Else they are those that changed since, and none is gone. */
  isWhole: boolean;
  sources: SourceRow[];
}

/** The sources of a knowledge base that changed since; all where sources are gone. Undefined when it does not exist. */
export async function readSources(
  tx: Tx,
  tenantId: string,
  namespace: string,
  seen: SeenState | undefined,
): Promise<ChangedSources | undefined> {
  const rows = await tx.query<SourceRow & SeenState & { source_id: string | null }>(
    `SELECT b.revision, b.deletions, s.source_id, s.version, s.model, s.chunk_count
    FROM knowledge_bases b LEFT JOIN knowledge_sources s ON s.tenant_id = $1 AND s.namespace = $2
      AND s.revision > CASE WHEN b.deletions = $4 THEN $3::bigint ELSE -1 END
    WHERE b.tenant_id = $1 AND b.namespace = $2 AND b.deleted_at IS NULL`,
    [tenantId, namespace, seen?.revision ?? -1, seen?.deletions ?? -1],
    'knowledge_sources_changed',
  );
  const [first] = rows;
  if (!first) return undefined;
  const { revision, deletions } = first;
  const sources = rows.filter((row) => row.source_id !== null);
  return { revision, deletions, isWhole: deletions !== seen?.deletions, sources };
}

/** The chunks of some sources, in their order. @param model vectors of other models are left out */
export function readChunks(
  tx: Tx,
  tenantId: string,
  namespace: string,
  sourceIds: readonly string[],
  model: string | null,
): Promise<ChunkRow[]> {
  return tx.query<ChunkRow>(
    `SELECT source_id, s.version, s.model, c.ordinal, s.title, c.heading_path, c.text,
      CASE WHEN c.model = $4 THEN c.embedding END AS embedding
    FROM knowledge_chunks c JOIN knowledge_sources s USING (tenant_id, namespace, source_id)
    WHERE c.tenant_id = $1 AND c.namespace = $2 AND c.source_id = ANY ($3)
    ORDER BY c.source_id, c.ordinal`,
    [tenantId, namespace, sourceIds, model],
    'knowledge_chunks_of',
  );
}

/** The sources of a knowledge base that pass filters. */
export async function readFiltered(
  tx: Tx,
  tenantId: string,
  namespace: string,
  filters: SearchFilters,
): Promise<Set<string>> {
  const { tags_any = null, tags_all = null, source_ids = null, metadata } = filters;
  const rows = await tx.query<{ source_id: string }>(
    `SELECT source_id FROM knowledge_sources
    WHERE tenant_id = $1 AND namespace = $2 AND ($3::text[] IS NULL OR tags && $3) AND ($4::text[] IS NULL OR tags @> $4)
      AND ($5::text[] IS NULL OR source_id = ANY ($5)) AND ($6::jsonb IS NULL OR metadata @> $6)`,
    [tenantId, namespace, tags_any, tags_all, source_ids, metadata ? JSON.stringify(metadata) : null],
    'knowledge_filtered',
  );
  return new Set(rows.map(({ source_id }) => source_id));
}
