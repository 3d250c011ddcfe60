import type { AgentWithRoom } from '../../agents/agent-row.js';
import type { Tx } from '../../db/pool.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { MessageRef } from '../core.js';

/**
 * Marks messages that wait for a free agent, because this one has room (db/functions/messages/wake_queued_messages.sql).
 * @returns the messages whose workflows are to be woken after the commit
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

/** As `wakeQueued`, one message for each agent on which a slot was freed, in one round trip. @param agents may contain an agent several times */
export async function wakeForFreed(
  tx: Tx,
  tenantId: string,
  agents: AgentWithRoom[],
): Promise<(MessageRef & SessionRef)[]> {
  if (agents.length === 0) return [];
  const freed = [...new Map(agents.map((agent) => [agent.instance_id, agent])).values()];
  const rows = await tx.query<{ woken: (MessageRef & SessionRef)[] | null }>(
    `SELECT wake_queued_messages($1, freed.agent_type, freed.instance_id, 1) AS woken
       FROM unnest($2::text[], $3::text[]) AS freed (agent_type, instance_id)`,
    [tenantId, freed.map(({ agent_type }) => agent_type), freed.map(({ instance_id }) => instance_id)],
  );
  return rows.flatMap(({ woken }) => woken ?? []);
}
