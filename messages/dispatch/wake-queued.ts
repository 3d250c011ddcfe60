import type { AgentWithRoom } from '../../agents/agent-row.js';
import type { Tx } from '../../db/pool.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { MessageRef } from '../core.js';

/**
 * Calls messages that wait for a free agent, because one has room: a dispatch ended, or it joined. Their workflows look again at once
 * instead of at their next, slower look. @returns whom to wake after the commit
 */
export async function wakeQueued(
  tx: Tx,
  tenantId: string,
  agent: AgentWithRoom,
  atMost: number,
): Promise<(MessageRef & SessionRef)[]> {
  const [row] = await tx.query<{ woken: (MessageRef & SessionRef)[] | null }>(
    'SELECT wake_queued_messages($1, $2, $3, $4) AS woken',
    [tenantId, agent.agent_type, agent.instance_id, atMost],
  );
  return row?.woken ?? [];
}

/**
 * As `wakeQueued`, of each agent that one session of a tenant has left: one message for each, as it frees one slot there.
 * @param agents may name one several times
 */
export async function wakeForFreed(
  tx: Tx,
  tenantId: string,
  agents: AgentWithRoom[],
): Promise<(MessageRef & SessionRef)[]> {
  const woken: (MessageRef & SessionRef)[] = [];
  for (const agent of new Map(agents.map((freed) => [freed.instance_id, freed])).values()) {
    woken.push(...(await wakeQueued(tx, tenantId, agent, 1)));
  }
  return woken;
}
