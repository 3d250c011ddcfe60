import type { AgentInstance } from '../contracts/api/agents.js';
import type { Tx } from '../db/pool.js';
import { getAgent, lockRegistered, recordHealth } from './agents.js';

/**
 * Drains an agent for an operator, or ends that, and writes `agent.health_changed` when another status shows. The drain holds whatever the agent
 * reports: routing reads it beside the status (`agents.has_room`).
 * @throws PlatformError NOT_FOUND, DEREGISTERED
 */
export async function setDrained(
  tx: Tx,
  tenantId: string,
  instanceId: string,
  drained: boolean,
): Promise<AgentInstance> {
  const before = await lockRegistered(tx, tenantId, instanceId);
  await tx.query('UPDATE agents SET drained = $3 WHERE tenant_id = $1 AND instance_id = $2', [
    tenantId,
    instanceId,
    drained,
  ]);
  await recordHealth(tx, before, before.status, drained);
  return getAgent(tx, tenantId, instanceId);
}
