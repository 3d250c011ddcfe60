import type { MessageSendParams } from '../../contracts/a2a.js';
import type { Caller } from '../../contracts/auth.js';
import { LIMITS } from '../../contracts/limits.js';
import { actsAs } from '../../contracts/permissions.js';
import { recordEvent } from '../../db/events.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageCore } from '../core.js';
import { type Acceptance, type Accepted, acceptMessage } from './accept.js';
import type { AcceptContext } from './draft.js';

/** Names that a caller may give a context: not those that the platform gives, which name a session that is there or none. */
const NAMED_BY_CALLER = /^(?!ses_)[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** Opens a session of the name that a caller chose; one that is there stays as it is. */
async function openNamed(core: MessageCore, caller: Caller, sessionId: string): Promise<void> {
  const { tenant_id, sub: created_by } = caller;
  await core.db.tenant(tenant_id, async (tx) => {
    const opened = await tx.query(
      `INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_by, sender_agent_type, wake_requested_at)
       VALUES ($1, $2, false, 'active', $3, $4, $5, now()) ON CONFLICT DO NOTHING RETURNING session_id`,
      [tenant_id, sessionId, LIMITS.idleTimeoutSecondsDefault, created_by, actsAs(caller)],
    );
    if (opened.length === 0) return;
    const about = { tenant_id, session_id: sessionId };
    await recordEvent(tx, about, 'session.created', { ...about, created_by });
  });
}

/**
 * Accepts a message, also into a context that its caller names for the first time, as many A2A clients do: a session of that name is
 * opened in the caller's tenant. It idles out like any other, should the process die before the message is accepted.
 * @throws as `acceptMessage` does
 */
export async function acceptInContext(
  acceptance: Acceptance,
  caller: Caller,
  params: MessageSendParams,
  context: AcceptContext,
): Promise<Accepted> {
  try {
    return await acceptMessage(acceptance, caller, params, context);
  } catch (error) {
    const { contextId } = params.message;
    const isNew = error instanceof PlatformError && error.code === 'SESSION_NOT_FOUND';
    if (!isNew || contextId === undefined || !NAMED_BY_CALLER.test(contextId)) throw error;
    await openNamed(acceptance.core, caller, contextId);
    return acceptMessage(acceptance, caller, params, context);
  }
}
