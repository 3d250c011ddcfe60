import type { AgentRow } from '../../agents/agent-row.js';
import { recordHealth } from '../../agents/agents.js';
import type { Tx } from '../../db/pool.js';

/** Agents of dead nodes that one transaction takes offline. */
const AGENTS_PER_SWEEP = 500;

/** Registers this process as a node. All functions here need a system transaction. */
export async function registerNode(tx: Tx, meshId: string): Promise<void> {
  await tx.query(
    `INSERT INTO mesh_nodes (mesh_id) VALUES ($1)
     ON CONFLICT (mesh_id) DO UPDATE SET renewed_at = now()`,
    [meshId],
  );
}

/** Renews the node's row. @returns false when another node has presumed it dead and removed the row */
export async function renewNode(tx: Tx, meshId: string): Promise<boolean> {
  const rows = await tx.query('UPDATE mesh_nodes SET renewed_at = now() WHERE mesh_id = $1 RETURNING mesh_id', [
    meshId,
  ]);
  return rows.length > 0;
}

/** Removes the row of a node that shuts down. */
export async function removeNode(tx: Tx, meshId: string): Promise<void> {
  await tx.query('DELETE FROM mesh_nodes WHERE mesh_id = $1', [meshId]);
}

type LostAgent = Pick<AgentRow, 'tenant_id' | 'instance_id' | 'agent_type' | 'status'>;

/**
 * Removes nodes that have not renewed for `deadAfterMs`, and takes connected agents without a living node offline.
 * @returns how many agents went offline; `more`: there may be further ones
 */
export async function sweepDeadNodes(tx: Tx, deadAfterMs: number): Promise<{ agents: number; more: boolean }> {
  await tx.query(`DELETE FROM mesh_nodes WHERE renewed_at < now() - $1 * interval '1 ms'`, [deadAfterMs]);
  const lost = await tx.query<LostAgent>(
    `SELECT tenant_id, instance_id, agent_type, status FROM agents a
      WHERE mesh_id IS NOT NULL AND deployment_mode = 'connected'
        AND NOT EXISTS (SELECT 1 FROM mesh_nodes n WHERE n.mesh_id = a.mesh_id)
      LIMIT ${AGENTS_PER_SWEEP} FOR UPDATE SKIP LOCKED`,
  );
  for (const agent of lost) await takeOffline(tx, agent);
  return { agents: lost.length, more: lost.length === AGENTS_PER_SWEEP };
}

async function takeOffline(tx: Tx, agent: LostAgent): Promise<void> {
  await tx.query(
    `UPDATE agents SET status = 'offline', mesh_id = NULL, connected_at = NULL WHERE tenant_id = $1 AND instance_id = $2`,
    [agent.tenant_id, agent.instance_id],
  );
  if (agent.status !== 'offline') await recordHealth(tx, agent, 'offline');
}
