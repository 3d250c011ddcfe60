import { BY_INDEX } from '../db/pages/page.js';
import type { Db } from '../db/pool.js';
import { IS_OVER, MESSAGES_AT_ONCE, SELECTED_COLUMNS, type SelectedMessage } from './selected-messages.js';

/** A message that an agent sent on. */
export interface ForwardedMessage extends SelectedMessage {
  is_over: boolean;
}

const noOther = (found: string) =>
  `NOT EXISTS (SELECT 1 FROM messages o WHERE o.tenant_id = $1 AND ${found} AND o.sender_agent_type IS NULL AND o.user_id IS DISTINCT FROM $3)`;

/**
 * Of traces in which all that no agent sent is the user's: what agents sent there, unless it is another user's. A caller may have
 * several users in one trace, and then nobody can tell whose the rest is. The message that began a trace has its UUID, and is not in the index
 * by trace.
 */
const FORWARDED = `
  WITH traces AS MATERIALIZED (SELECT DISTINCT trace_of(m.trace_id, m.message_id) AS trace_id FROM messages m WHERE m.tenant_id = $1 AND m.message_id = ANY ($2)),
  own AS MATERIALIZED (
    SELECT t.trace_id FROM traces t WHERE ${noOther('o.trace_id = t.trace_id AND o.parent_span_id IS NOT NULL')}
       AND ${noOther("o.message_id = 'msg_' || t.trace_id::uuid")})
  SELECT ${SELECTED_COLUMNS}, ${IS_OVER} AS is_over
    FROM own t
    JOIN messages m ON m.tenant_id = $1 AND m.trace_id = t.trace_id AND m.parent_span_id IS NOT NULL AND m.sender_agent_type IS NOT NULL
   WHERE m.message_id <> ALL ($2) AND coalesce(m.user_id, $3) = $3 ORDER BY m.message_id LIMIT ${MESSAGES_AT_ONCE}`;

/**
 * The next messages that agents sent on behalf of a user, in contexts of their own: they continue the traces of the user's messages. To be
 * erased before these, which lead to them.
 */
export function findForwarded(
  db: Db,
  tenantId: string,
  userId: string,
  messages: readonly SelectedMessage[],
): Promise<ForwardedMessage[]> {
  const ids = messages.map(({ message_id }) => message_id);
  return db.system(async (tx) => {
    await tx.query(BY_INDEX);
    return tx.query<ForwardedMessage>(FORWARDED, [tenantId, ids, userId]);
  });
}
