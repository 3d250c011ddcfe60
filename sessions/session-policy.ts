import type { Caller } from '../contracts/api/auth.js';
import type { SessionInitRequest, SessionInviteRequest } from '../contracts/api/sessions.js';
import type { Db } from '../db/pool.js';
import { enforce } from '../policy/enforce.js';
import { tokenFacts } from '../policy/token-facts.js';
import type { DecisionEvent } from '../policy/verdict.js';
import type { SessionDeps } from './session-deps.js';

type Named = Partial<Pick<SessionInitRequest, 'user_id' | 'metadata'> & Pick<SessionInviteRequest, 'session_id'>> &
  Pick<SessionInitRequest, 'agent_type' | 'instance_id'>;

/** The type that is meant: the one that is named, else that of the named instance. */
async function typeOf(db: Db, tenantId: string, { agent_type, instance_id }: Named): Promise<string | undefined> {
  if (agent_type !== undefined || instance_id === undefined) return agent_type;
  const one = 'SELECT agent_type FROM agents WHERE tenant_id = $1 AND instance_id = $2';
  const [agent] = await db.tenant(tenantId, (tx) => tx.query<{ agent_type: string }>(one, [tenantId, instance_id]));
  return agent?.agent_type;
}

/**
 * Lets the policies of scope `session` decide about a session that is opened, or an agent that is invited. They see the agent that is named.
 * @returns events to be written with it
 * @throws PlatformError forbidden; SERVICE_UNAVAILABLE while the policies cannot be read
 */
export async function decideSession(
  deps: Pick<SessionDeps, 'db' | 'policies'>,
  caller: Caller,
  action: 'init' | 'invite',
  named: Named,
): Promise<DecisionEvent[]> {
  const { tenant_id } = caller;
  if (!deps.policies.concerns(tenant_id, 'session')) return [];
  const agent_type = await typeOf(deps.db, tenant_id, named);
  const { instance_id, session_id, user_id, metadata } = named;
  return enforce(deps, tenant_id, {
    scope: 'session',
    action,
    arguments: metadata === undefined ? {} : { metadata },
    agent: { ...(agent_type && { agent_type }), ...(instance_id && { instance_id }) },
    session: { ...(session_id && { session_id }), ...(user_id && { user_id }) },
    token: tokenFacts(caller),
  });
}
