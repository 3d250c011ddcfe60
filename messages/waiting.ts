import type { Tx } from '../db/pool.js';
import type { MessageRef, SessionRef } from './core.js';

/** The oldest messages that wait for a free agent and were not called yet. */
const CALL_WAITING = `
  UPDATE messages SET wake_requested_at = now() WHERE (tenant_id, message_id) IN (
    SELECT tenant_id, message_id FROM messages
     WHERE tenant_id = $1 AND unrouted_since IS NOT NULL AND wake_requested_at IS NULL
     ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
  RETURNING tenant_id, message_id, session_id`;

/**
 * Calls messages that wait for a free agent, because room has come: a dispatch ended, or an agent joined. Their workflows look again
 * at once instead of at their next, slower look. @returns whom to wake after the commit
 */
export function callWaiting(tx: Tx, tenantId: string, most: number): Promise<(MessageRef & SessionRef)[]> {
  return tx.query<MessageRef & SessionRef & Record<string, unknown>>(CALL_WAITING, [tenantId, most]);
}
