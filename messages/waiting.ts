import type { Tx } from '../db/pool.js';
import type { MessageRef, SessionRef } from './core.js';

/** The agent that has room. */
export interface RoomyAgent {
  agent_type: string;
  instance_id: string;
}

/**
 * Calls messages that wait for a free agent, because one has room: a dispatch ended, or it joined. Their workflows look again at once
 * instead of at their next, slower look. @returns whom to wake after the commit
 */
export async function callWaiting(
  tx: Tx,
  tenantId: string,
  agent: RoomyAgent,
  most: number,
): Promise<(MessageRef & SessionRef)[]> {
  const [row] = await tx.query<{ called: (MessageRef & SessionRef)[] | null }>(
    'SELECT call_waiting($1, $2, $3, $4) AS called',
    [tenantId, agent.agent_type, agent.instance_id, most],
  );
  return row?.called ?? [];
}
