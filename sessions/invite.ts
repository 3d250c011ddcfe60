import type { ChosenAgent } from '../agents/agent-row.js';
import type { Caller } from '../contracts/api/auth.js';
import type { SessionAgent, SessionInviteRequest } from '../contracts/api/sessions.js';
import type { Tx } from '../db/pool.js';
import { recordDecision } from '../policy/enforce.js';
import { PlatformError } from '../runtime/errors.js';
import { agentsOf, chooseAgent, choosing, isRoutable, joinSession } from './session-agents.js';
import type { SessionDeps } from './session-deps.js';
import { bindsToType, type LockedSession, lockSession, recordLoadMoved, requireActive } from './session-end.js';
import { decideSession } from './session-policy.js';

/**
 * Makes an agent the session's agent of its type. If the session binds to that type, it is bound to the agent; a session that reserves its
 * place then counts towards the agent's load.
 */
async function join(
  tx: Tx,
  session: LockedSession,
  agent: ChosenAgent,
  reason: 'invited' | 'failover',
): Promise<SessionAgent> {
  const joined = await joinSession(tx, session, agent, reason);
  if (!bindsToType(session, agent.agent_type)) return joined;
  const bind = 'UPDATE sessions SET instance_id = $3, agent_type = $4 WHERE tenant_id = $1 AND session_id = $2';
  await tx.query(bind, [session.tenant_id, session.session_id, agent.instance_id, agent.agent_type]);
  await recordLoadMoved(tx, session, agent.instance_id);
  return joined;
}

/**
 * Adds an agent to a session (`/sessions/invite`): the agent of that type that it already has, else the requested instance, else the least
 * loaded one. An agent that is no longer routable is replaced. A session that is not bound to the invited agent counts towards its load only
 * while the agent runs a message of it.
 * @throws PlatformError NOT_FOUND (session, instance), SESSION_CLOSED, BAD_REQUEST (instance of another type), CONFLICT (the session has
 * another instance of the type), SERVICE_UNAVAILABLE (not routable), AGENT_AT_CAPACITY, forbidden (a policy denies it)
 */
export async function inviteAgent(
  deps: Pick<SessionDeps, 'db' | 'policies'>,
  caller: Caller,
  request: SessionInviteRequest,
): Promise<SessionAgent> {
  const { tenant_id } = caller;
  const { session_id, agent_type, instance_id } = request;
  const decided = await decideSession(deps, caller, 'invite', request);
  return choosing(deps.db, tenant_id, request, async (tx) => {
    const session = await lockSession(tx, tenant_id, session_id);
    requireActive(session);
    await recordDecision(tx, tenant_id, session_id, decided);
    const present = (await agentsOf(tx, session)).findLast((agent) => agent.agent_type === agent_type);
    const named = { instance_id: present?.instance_id, agent_type };
    const stays = present !== undefined && (await isRoutable(tx, tenant_id, named));
    if (stays && instance_id !== undefined && instance_id !== present.instance_id) {
      throw new PlatformError('CONFLICT', 'The session has another agent of that type already.');
    }
    // A deregistration unbound the session, and the agent has registered again since.
    const returns = session.instance_id === null && bindsToType(session, agent_type);
    if (stays && !returns) return present;
    const reserves = session.reserves && bindsToType(session, agent_type);
    const agent = await chooseAgent(tx, tenant_id, stays ? named : { instance_id, agent_type }, reserves);
    return join(tx, session, agent, present ? 'failover' : 'invited');
  });
}
