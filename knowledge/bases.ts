import {
  KnowledgeConfig,
  type NewKnowledgeBaseRequest,
  type UpdateKnowledgeBaseRequest,
} from '../contracts/api/knowledge/knowledge.js';
import { LIMITS } from '../contracts/limits.js';
import { queryJson } from '../db/json-rows.js';
import { type Page, type PageRequest, readPage } from '../db/page.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { BASE_COLUMNS, type BaseRow, type KnowledgeReader, requireBase, VISIBLE, visibleTo } from './base-access.js';

/** Sources, or jobs, that one statement deletes at most. Each takes its chunks or documents along: beyond so many of these it stops too. */
const DELETE_BATCH = 100;
const DELETE_ROWS = 10_000;

/** The first of these rows, as many as one statement may delete; at least one. */
const firstOf = (table: string, key: string, rows: string): string => `
  SELECT ${key} FROM (
    SELECT ${key}, sum(${rows}) OVER (ORDER BY ${key}) - ${rows} AS before FROM (
      SELECT ${key}, ${rows} FROM ${table} WHERE tenant_id = $1 AND namespace = $2 ORDER BY ${key} LIMIT ${DELETE_BATCH}) AS listed) AS counted
   WHERE before < ${DELETE_ROWS}`;

/** @throws PlatformError BAD_REQUEST when chunks would repeat more than they add */
function checkConfig(config: KnowledgeConfig): KnowledgeConfig {
  if (config.chunk_overlap * 2 < config.chunk_tokens) return config;
  throw new PlatformError('BAD_REQUEST', 'config.chunk_overlap: must be less than half of chunk_tokens');
}

/**
 * Writes a new knowledge base.
 * @param createdBy credential
 * @throws PlatformError CONFLICT when the namespace is taken, also by a base that the caller may not see; SERVICE_UNAVAILABLE while one of that
 *   name is being deleted
 */
export async function insertBase(
  tx: Tx,
  tenantId: string,
  createdBy: string,
  request: NewKnowledgeBaseRequest,
): Promise<BaseRow> {
  const { namespace, display_name = namespace, description = '', visibility = 'tenant' } = request;
  const config = checkConfig(KnowledgeConfig.parse(request.config ?? {}));
  const [count] = await tx.query<{ count: number }>(
    'SELECT count(*) AS count FROM knowledge_bases WHERE tenant_id = $1',
    [tenantId],
  );
  if ((count?.count ?? 0) >= LIMITS.knowledgeBasesPerTenant) {
    throw new PlatformError('CONFLICT', `A tenant may have ${LIMITS.knowledgeBasesPerTenant} knowledge bases.`);
  }
  const insert = `
    INSERT INTO knowledge_bases (tenant_id, namespace, display_name, description, visibility, config, created_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING ${BASE_COLUMNS}`;
  const values = [tenantId, namespace, display_name, description, visibility, config, createdBy];
  const [row] = await queryJson<BaseRow>(tx, insert, values);
  if (row) return row;
  const [deleted] = await tx.query(
    'SELECT 1 FROM knowledge_bases WHERE tenant_id = $1 AND namespace = $2 AND deleted_at IS NOT NULL',
    [tenantId, namespace],
  );
  if (deleted)
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      `The knowledge base ${namespace} is still being deleted. Try again in a minute.`,
    );
  throw new PlatformError('CONFLICT', `There is a knowledge base ${namespace} already.`);
}

/** The bases that a reader may see, newest first. */
export function listBases(db: Db, reader: KnowledgeReader, page: PageRequest): Promise<Page<BaseRow>> {
  const [tenantId, ...rest] = visibleTo(reader) as [string, ...unknown[]];
  const list = {
    key: 'namespace',
    from: `knowledge_bases WHERE ${VISIBLE}`,
    orderBy: 'created_at DESC, namespace DESC',
    values: [tenantId, ...rest] as [string, ...unknown[]],
    bounded: true,
  };
  return readPage(db, list, page, async (tx, keys) => {
    const select = `SELECT ${BASE_COLUMNS} FROM knowledge_bases WHERE tenant_id = $1 AND namespace = ANY ($2) AND deleted_at IS NULL`;
    const rows = await queryJson<BaseRow>(tx, `${select} ORDER BY created_at DESC, namespace DESC`, [tenantId, keys]);
    return rows;
  });
}

/** Changes the given fields. @returns also whether the chunks of its sources are of other settings now */
export async function updateBase(
  tx: Tx,
  reader: KnowledgeReader,
  request: UpdateKnowledgeBaseRequest,
): Promise<{ base: BaseRow; chunkingChanged: boolean }> {
  const before = await requireBase(tx, reader, request.namespace);
  const config = checkConfig(KnowledgeConfig.parse({ ...before.config, ...request.config }));
  const { display_name, description, visibility } = { ...before, ...given(request) };
  const update = `
    UPDATE knowledge_bases SET display_name = $3, description = $4, visibility = $5, config = $6, updated_at = now()
     WHERE tenant_id = $1 AND namespace = $2 AND deleted_at IS NULL RETURNING ${BASE_COLUMNS}`;
  const values = [reader.tenantId, request.namespace, display_name, description, visibility, config];
  const [base] = await queryJson<BaseRow>(tx, update, values);
  if (!base) throw new PlatformError('NOT_FOUND', `There is no knowledge base ${request.namespace}.`);
  const { chunk_tokens, chunk_overlap } = before.config;
  const chunkingChanged = chunk_tokens !== config.chunk_tokens || chunk_overlap !== config.chunk_overlap;
  return { base, chunkingChanged };
}

const given = <Fields extends object>(fields: Fields): Partial<Fields> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<Fields>;

/**
 * Deletes a base. It answers nothing more as soon as the first transaction is committed; its rows go in batches, and a process that dies in
 * the middle leaves the rest to `purgeDeletedBases`.
 * @throws PlatformError NOT_FOUND
 */
export async function deleteBase(db: Db, reader: KnowledgeReader, namespace: string): Promise<void> {
  const { tenantId } = reader;
  await db.tenant(tenantId, async (tx) => {
    await requireBase(tx, reader, namespace);
    await tx.query(
      `UPDATE knowledge_bases SET deleted_at = now(), revision = nextval('knowledge_order') WHERE tenant_id = $1 AND namespace = $2`,
      [tenantId, namespace],
    );
  });
  await purgeBase((work) => db.tenant(tenantId, work), tenantId, namespace);
}

/** Deletes the rows of a base that is marked as deleted, and then the base. Several processes may do so at once. */
async function purgeBase(
  transact: <T>(work: (tx: Tx) => Promise<T>) => Promise<T>,
  tenantId: string,
  namespace: string,
): Promise<void> {
  const isDeleted = `EXISTS (SELECT 1 FROM knowledge_bases WHERE tenant_id = $1 AND namespace = $2 AND deleted_at IS NOT NULL)`;
  const key = [tenantId, namespace];
  const deleteAll = async (table: string, id: string, rows: string): Promise<void> => {
    const deleteSome = `
      DELETE FROM ${table} WHERE tenant_id = $1 AND namespace = $2 AND ${isDeleted} AND ${id} IN (${firstOf(table, id, rows)}) RETURNING 1`;
    while ((await transact((tx) => tx.query(deleteSome, key))).length > 0);
  };
  // Jobs first: what they still write finds neither job nor base.
  await deleteAll('knowledge_jobs', 'job_id', 'documents');
  await deleteAll('knowledge_sources', 'source_id', 'chunk_count');
  const deleteRow = `
    DELETE FROM knowledge_bases b WHERE tenant_id = $1 AND namespace = $2 AND deleted_at IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM knowledge_sources s WHERE s.tenant_id = b.tenant_id AND s.namespace = b.namespace)`;
  await transact((tx) => tx.query(deleteRow, key));
}

/** Finishes deletions that were begun, of bases and of tenants: a deleted tenant's knowledge is erased. */
export async function purgeDeletedBases(db: Db): Promise<void> {
  await db.system((tx) =>
    tx.query(`
      UPDATE knowledge_bases b SET deleted_at = now() FROM tenants t
       WHERE t.tenant_id = b.tenant_id AND t.deleted_at IS NOT NULL AND b.deleted_at IS NULL`),
  );
  const left = await db.system((tx) =>
    tx.query<{ tenant_id: string; namespace: string }>(
      'SELECT tenant_id, namespace FROM knowledge_bases WHERE deleted_at IS NOT NULL ORDER BY deleted_at LIMIT 100',
    ),
  );
  let failure: unknown;
  for (const { tenant_id, namespace } of left) {
    // One that fails does not keep the others.
    await purgeBase((work) => db.system(work), tenant_id, namespace).catch((error: unknown) => {
      failure = error;
    });
  }
  if (failure) throw failure;
}
