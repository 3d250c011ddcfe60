import type { Tx } from '../db/pool.js';
import type { EraserDeps } from './eraser-deps.js';
import { addRemoved, type Erasure } from './erasures.js';

/** What an erasure removes outside of the database. */
interface External {
  /** Ids of workflows. */
  workflows: readonly string[];
  /** Keys in Redis. */
  keys: readonly string[];
}

const NOTE = `
  UPDATE erasures SET removing_workflows = ARRAY(SELECT DISTINCT unnest(removing_workflows || $2::text[])),
    removing_keys = ARRAY(SELECT DISTINCT unnest(removing_keys || $3::text[])) WHERE erasure_id = $1`;
const TAKE = `
  UPDATE erasures e SET removing_workflows = '{}', removing_keys = '{}'
    FROM (SELECT cardinality(removing_workflows) AS workflows, cardinality(removing_keys) AS redis_keys FROM erasures
          WHERE erasure_id = $1 AND removing_workflows || removing_keys <> '{}' FOR UPDATE) noted
   WHERE e.erasure_id = $1 RETURNING noted.workflows, noted.redis_keys`;

/**
 * Removes workflows and keys, which no transaction can undo. Their names are noted before, so that a crash leaves none of them out of the
 * report. `countExternal` follows, with the rows.
 * @param messageIds whose output this process forgets too; null: that of the whole tenant
 */
export async function removeExternal(
  { db, workflows, bus }: EraserDeps,
  { tenant_id, erasure_id }: Erasure,
  external: External,
  messageIds: readonly string[] | null = [],
): Promise<void> {
  if (external.workflows.length + external.keys.length > 0)
    await db.system((tx) => tx.query(NOTE, [erasure_id, external.workflows, external.keys]));
  await workflows.erase(external.workflows);
  await bus.forget(tenant_id, messageIds, external.keys);
}

/** Removes what a process that died had noted. It stays noted until the next portion counts it: Temporal may still show a workflow. */
export async function removeNoted({ workflows, bus }: EraserDeps, erasure: Erasure): Promise<void> {
  await workflows.erase(erasure.removing_workflows);
  await bus.forget(erasure.tenant_id, [], erasure.removing_keys);
}

/** Adds to the report what is noted, all of which is removed, in the transaction of the rows that led to it: each is counted once. */
export async function countExternal(tx: Tx, erasureId: string): Promise<void> {
  const [noted] = await tx.query<{ workflows: number; redis_keys: number }>(TAKE, [erasureId]);
  await addRemoved(tx, erasureId, { ...noted });
}
