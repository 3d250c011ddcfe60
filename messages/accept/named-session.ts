import type { Caller } from '../../contracts/api/auth.js';
import { LIMITS } from '../../contracts/limits.js';
import { actsAs } from '../../contracts/permissions.js';
import { recordEvent } from '../../db/events.js';
import type { Db } from '../../db/pool.js';
import { recordDecision } from '../../policy/enforce.js';
import type { DecisionEvent } from '../../policy/verdict.js';
import type { NewMessage } from './accept-transaction.js';

/** Names that a caller may give a context. A name like the platform's own ids must be an existing session. */
const CALLER_CONTEXT = /^(?!ses_)[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** Whether a caller may give a new context this name. */
export function isContextName(contextId: string): boolean {
  return CALLER_CONTEXT.test(contextId);
}

/** Opens the session of a message whose caller chose its id. An existing session stays as it is: false. @param decided events of policies about it */
export async function openNamedSession(
  db: Db,
  caller: Caller,
  { requested_context: sessionId, user_id: userId }: Pick<NewMessage, 'requested_context' | 'user_id'>,
  decided: readonly DecisionEvent[],
): Promise<boolean> {
  const { tenant_id, credential_id, sub: created_by } = caller;
  return db.tenant(tenant_id, async (tx) => {
    const opened = await tx.query(
      `INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, sender_agent_type, idle_check_at, user_id, credential_id)
       VALUES ($1, $2, false, 'active', $3, $4, now() + $3::integer * interval '1 s', $5, $6) ON CONFLICT DO NOTHING RETURNING session_id`,
      [tenant_id, sessionId, LIMITS.idleTimeoutSecondsDefault, actsAs(caller), userId, credential_id],
    );
    if (opened.length === 0) return false;
    const ids = { tenant_id, session_id: sessionId };
    await recordEvent(tx, ids, 'session.created', { ...ids, created_by });
    await recordDecision(tx, tenant_id, sessionId, decided);
    return true;
  });
}
