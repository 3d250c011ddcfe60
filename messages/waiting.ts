import type { Tx } from '../db/pool.js';
import type { MessageRef, SessionRef } from './core.js';

/** The agent that has room. */
export interface RoomyAgent {
  agent_type: string;
  instance_id: string;
}

/** The oldest messages that wait for a free agent, could use this one, and were not called yet. */
const CALL_WAITING = `
  WITH picked AS MATERIALIZED (
    SELECT tenant_id, message_id FROM messages
     WHERE tenant_id = $1 AND unrouted_since IS NOT NULL AND NOT holds_slot AND wake_requested_at IS NULL
       AND coalesce(agent_type, want_agent_type, $3) = $3 AND coalesce(want_instance_id, $4) = $4
     ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
  UPDATE messages m SET wake_requested_at = now() FROM picked
   WHERE m.tenant_id = picked.tenant_id AND m.message_id = picked.message_id
  RETURNING m.tenant_id, m.message_id, m.session_id`;

/**
 * Calls messages that wait for a free agent, because one has room: a dispatch ended, or it joined. Their workflows look again at once
 * instead of at their next, slower look. @returns whom to wake after the commit
 */
export function callWaiting(
  tx: Tx,
  tenantId: string,
  agent: RoomyAgent,
  most: number,
): Promise<(MessageRef & SessionRef)[]> {
  return tx.query<MessageRef & SessionRef & Record<string, unknown>>(CALL_WAITING, [
    tenantId,
    most,
    agent.agent_type,
    agent.instance_id,
  ]);
}
