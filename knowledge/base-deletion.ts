import type { Db, Tx } from '../db/pool.js';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { type KnowledgeReader, requireBase } from './base-access.js';

/** Sources, or jobs, that one statement deletes at most. Each takes its chunks or documents along: beyond so many of these it stops too. */
const DELETE_BATCH = 100;
const DELETE_ROWS = 10_000;

/** The first of these rows, as many as one statement may delete; at least one. */
const firstOf = (table: string, key: string, rows: string): string => `
  SELECT ${key} FROM (
    SELECT ${key}, sum(${rows}) OVER (ORDER BY ${key}) - ${rows} AS before FROM (
      SELECT ${key}, ${rows} FROM ${table} WHERE tenant_id = $1 AND namespace = $2 ORDER BY ${key} LIMIT ${DELETE_BATCH}) AS listed) AS counted
   WHERE before < ${DELETE_ROWS}`;

/**
 * Deletes a base. It answers nothing more as soon as the first transaction is committed; its rows go in batches, and whatever fails or dies in
 * the middle leaves the rest to `purgeDeletedBases`.
 * @throws PlatformError NOT_FOUND
 */
export async function deleteBase(
  { db, log }: { db: Db; log: Pick<Logger, 'warn'> },
  reader: KnowledgeReader,
  namespace: string,
): Promise<void> {
  const { tenantId } = reader;
  await db.tenant(tenantId, async (tx) => {
    await requireBase(tx, reader, namespace);
    await tx.query(
      `UPDATE knowledge_bases SET deleted_at = now(), revision = nextval('knowledge_order') WHERE tenant_id = $1 AND namespace = $2`,
      [tenantId, namespace],
    );
  });
  await purgeBase((work) => db.tenant(tenantId, work), tenantId, namespace).catch((error: unknown) => {
    log.warn({ err: errorMessage(error), tenant_id: tenantId }, 'rows of a deleted knowledge base go later');
  });
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
