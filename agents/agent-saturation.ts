import type { Db } from '../db/pool.js';
import type { AgentRef } from './agent-row.js';

/** A mark ends after this time unless its node renews it, because the node may die. */
const VALID = "interval '5 s'";

/**
 * Sets the marks of a hosted agent. Every node sends to it, so routing skips it only while all living nodes have marked it. A node that has no
 * room releases the dispatch, and another takes the message.
 * @param own SQL that adds the new mark of this node, $3; empty to remove its mark
 */
const marksWith = (own: string) => `
  (saturated_on, saturated_until) = (
    SELECT marks.by_node, CASE WHEN NOT EXISTS (SELECT 1 FROM mesh_nodes n
             WHERE n.renewed_at > now() - ${VALID} AND NOT n.draining AND NOT marks.by_node ? n.mesh_id) THEN marks.until END
      FROM (SELECT coalesce(jsonb_object_agg(valid.node, valid.until), '{}') AS by_node, min(valid.until) AS until
              FROM (SELECT m.key AS node, m.value::timestamptz AS until FROM jsonb_each_text(a.saturated_on) m
                     WHERE m.key <> $3 AND m.value::timestamptz > now() ${own}) valid) marks)`;
const OF_HOSTED = "a.tenant_id = $1 AND a.instance_id = $2 AND a.deployment_mode = 'hosted'";
/** A connected agent belongs to the node that holds its socket. */
const OF_NODE = "a.tenant_id = $1 AND a.instance_id = $2 AND a.deployment_mode = 'connected' AND a.mesh_id = $3";

const MARK = `
  WITH connected AS (UPDATE agents a SET saturated_until = now() + ${VALID} WHERE ${OF_NODE})
  UPDATE agents a SET ${marksWith(`UNION ALL SELECT $3, now() + ${VALID}`)} WHERE ${OF_HOSTED}`;
const UNMARK = `
  WITH connected AS (UPDATE agents a SET saturated_until = NULL WHERE ${OF_NODE} RETURNING 1),
  hosted AS (UPDATE agents a SET ${marksWith('')} WHERE ${OF_HOSTED} RETURNING 1)
  SELECT * FROM connected UNION ALL SELECT * FROM hosted`;

/**
 * Marks an agent as saturated for five seconds: this node has no room for further dispatches to it, and routing skips it. Runs as the
 * platform's role, so that it does not wait behind the messages of a tenant that has too many.
 */
export async function markSaturated(db: Db, { tenant_id, instance_id }: AgentRef, meshId: string): Promise<void> {
  await db.system((tx) => tx.query(MARK, [tenant_id, instance_id, meshId]));
}

/** Ends this node's mark of an agent. @returns false when it is no longer this node's */
export async function endSaturation(db: Db, { tenant_id, instance_id }: AgentRef, meshId: string): Promise<boolean> {
  const unmarked = await db.system((tx) => tx.query(UNMARK, [tenant_id, instance_id, meshId]));
  return unmarked.length > 0;
}
