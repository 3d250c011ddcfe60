import type { AgentWithRoom } from '../../agents/agent-row.js';
import type { Tx } from '../../db/pool.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { MessageRef } from '../core.js';

/**
 * Marks messages that wait for a free agent, because this one has room (db/functions/wake_queued_messages.sql).
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

/** As `wakeQueued`, one message for each agent on which one session freed a slot. @param agents may contain an agent several times */
export async function wakeForFreed(
  tx: Tx,
  tenantId: string,
  agents: AgentWithRoom[],
): Promise<(MessageRef & SessionRef)[]> {
  const woken: (MessageRef & SessionRef)[] = [];
  for (const agent of new Map(agents.map((agent) => [agent.instance_id, agent])).values()) {
    woken.push(...(await wakeQueued(tx, tenantId, agent, 1)));
  }
  return woken;
}
