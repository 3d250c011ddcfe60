import type { MessageSendParams } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import { isLimited } from '../../contracts/permissions.js';
import type { Db } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { type AcceptContext, routingOf } from './draft.js';
import { sessionNotFound } from './verdicts.js';

const INSTANCE = 'SELECT agent_type FROM agents WHERE tenant_id = $1 AND instance_id = $2';
const SESSION = 'SELECT agent_type FROM sessions WHERE tenant_id = $1 AND session_id = $2';

/** @throws PlatformError forbidden for another user; SESSION_NOT_FOUND for another session */
function inSession(caller: Caller, params: MessageSendParams): MessageSendParams {
  const { message, metadata } = params;
  const named = { ...message.metadata, ...metadata }.user_id;
  if (named !== undefined && named !== caller.user_id)
    throw new PlatformError('forbidden', 'metadata.user_id: a token with limits sends for its own user only.');
  if (caller.session_id === undefined) return params;
  const { contextId = caller.session_id } = message;
  if (contextId !== caller.session_id) throw sessionNotFound();
  return { ...params, message: { ...message, contextId } };
}

/**
 * Puts a message of a limited token within its limits: for its user, in its session, to an agent of its types. If the message names no type, it gets the
 * session's, or the only one that is allowed.
 * @throws PlatformError forbidden for another user or type; SESSION_NOT_FOUND for another session; TARGET_REQUIRED where several types are left
 */
export async function withinLimits(
  db: Db,
  caller: Caller,
  given: MessageSendParams,
  context: AcceptContext,
): Promise<{ params: MessageSendParams; context: AcceptContext }> {
  if (!isLimited(caller)) return { params: given, context };
  const params = inSession(caller, given);
  const { agent_types_allowed: types, tenant_id } = caller;
  if (types === undefined) return { params, context };
  const { want_agent_type, want_instance_id } = routingOf(params, context);
  const { contextId } = params.message;
  const typeOf = async (select: string, id: string): Promise<string | null> => {
    const [row] = await db.tenant(tenant_id, (tx) => tx.query<{ agent_type: string | null }>(select, [tenant_id, id]));
    return row?.agent_type ?? null;
  };
  const named = [want_agent_type, want_instance_id && ((await typeOf(INSTANCE, want_instance_id)) ?? '')];
  if (named.some((type) => type !== null && !types.includes(type)))
    throw new PlatformError('forbidden', `The token is limited to agents of the types ${types.join(', ')}.`);
  if (named.some((type) => type !== null)) return { params, context };
  const ofSession = contextId ? await typeOf(SESSION, contextId) : null;
  const agent_type = ofSession ?? (types.length === 1 ? types[0] : undefined);
  if (agent_type === undefined)
    throw new PlatformError('TARGET_REQUIRED', `metadata.agent_type: name one of ${types.join(', ')}.`);
  return { params, context: { ...context, target: { agent_type } } };
}
