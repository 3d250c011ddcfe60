import { type Author, recordAudit } from '../audit/record-audit.js';
import type { AgentInstance } from '../contracts/api/agents.js';
import type { Tx } from '../db/pool.js';
import { getAgent, lockRegistered, recordHealth } from './agents.js';

/**
 * Drains an agent for an operator, or ends the drain, and writes `agent.health_changed` when another status shows. The drain holds whatever
 * status the agent reports: routing looks at both (`agents.has_room`).
 * @throws PlatformError NOT_FOUND, DEREGISTERED
 */
export async function setDrained(tx: Tx, author: Author, instanceId: string, drained: boolean): Promise<AgentInstance> {
  const { tenant_id: tenantId, principal } = author;
  const before = await lockRegistered(tx, tenantId, instanceId);
  const update = 'UPDATE agents SET drained = $3, updated_by = $4 WHERE tenant_id = $1 AND instance_id = $2';
  await tx.query(update, [tenantId, instanceId, drained, principal.id]);
  await recordAudit(tx, author, {
    action: drained ? 'agent.drain' : 'agent.undrain',
    target: { type: 'agent', id: instanceId, name: before.agent_type },
    before: { drained: before.drained },
    after: { drained },
  });
  await recordHealth(tx, before, before.status, drained);
  return getAgent(tx, tenantId, instanceId);
}
