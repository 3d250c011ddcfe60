import type { Db } from '../db/pool.js';
import type { AgentRef, AgentWithRoom } from './agent-row.js';

/** A mark that its node does not renew ends after this time: nodes die. */
const VALID = "interval '5 s'";
/** A connected agent belongs to the node that holds its socket. */
const OF_NODE = `tenant_id = $1 AND instance_id = $2 AND (deployment_mode = 'hosted' OR mesh_id = $3)`;

/** Marks an agent as saturated for five seconds: this node has no room for further dispatches to it, and routing skips it. */
export async function markSaturated(db: Db, { tenant_id, instance_id }: AgentRef, meshId: string): Promise<void> {
  const mark = `UPDATE agents SET saturated_until = now() + ${VALID} WHERE ${OF_NODE}`;
  await db.tenant(tenant_id, (tx) => tx.query(mark, [tenant_id, instance_id, meshId]));
}

/**
 * Ends the saturation of an agent. Another node that has no room for a hosted agent marks it again.
 * @returns the agent; null when it is no longer this node's
 */
export async function endSaturation(
  db: Db,
  { tenant_id, instance_id }: AgentRef,
  meshId: string,
): Promise<AgentWithRoom | null> {
  const end = `UPDATE agents SET saturated_until = NULL WHERE ${OF_NODE} RETURNING agent_type, instance_id`;
  const values = [tenant_id, instance_id, meshId];
  const [agent] = await db.tenant(tenant_id, (tx) => tx.query<AgentWithRoom & Record<string, unknown>>(end, values));
  return agent ?? null;
}
