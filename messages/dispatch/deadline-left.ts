import type { Db } from '../../db/pool.js';
import type { DispatchRef } from './dispatches.js';

/** As `Dispatches.deadlineLeft`. */
export async function readDeadlineLeft(
  db: Db,
  { tenant_id, dispatch_id }: DispatchRef,
): Promise<number | 'stands_still'> {
  const [row] = await db.tenant(tenant_id, (tx) =>
    tx.query<{ left_ms: number | null }>(
      `SELECT (extract(epoch FROM deadline_at - now()) * 1000)::float8 AS left_ms FROM dispatches
        WHERE tenant_id = $1 AND dispatch_id = $2 AND state = 'sent'`,
      [tenant_id, dispatch_id],
    ),
  );
  return row ? (row.left_ms ?? 'stands_still') : 0;
}
