import { isRoutable } from '../agents/candidates.js';
import type { Caller } from '../contracts/auth.js';
import type { SessionAgent, SessionInviteRequest } from '../contracts/sessions.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { chooseAgent } from './choose-agent.js';
import { agentOfType, joinSession } from './session-agents.js';
import type { SessionDeps } from './session-deps.js';
import { countMoved, isOwn, type LockedSession, lockSession } from './session-end.js';

/**
 * Makes an agent the one that the session has for its type. A session without an agent of its own is bound to it, and one from
 * `/sessions/init` then counts on it.
 */
async function join(
  tx: Tx,
  session: LockedSession,
  agent: Pick<SessionAgent, 'agent_type' | 'instance_id'>,
  reason: 'invited' | 'failover',
): Promise<SessionAgent> {
  const joined = await joinSession(tx, session, agent, reason);
  if (!isOwn(session, agent.agent_type)) return joined;
  await tx.query('UPDATE sessions SET instance_id = $3, agent_type = $4 WHERE tenant_id = $1 AND session_id = $2', [
    session.tenant_id,
    session.session_id,
    agent.instance_id,
    agent.agent_type,
  ]);
  await countMoved(tx, session, agent.instance_id);
  return joined;
}

async function invite(tx: Tx, session: LockedSession, body: SessionInviteRequest): Promise<SessionAgent> {
  const { agent_type } = body;
  const present = await agentOfType(tx, session, agent_type);
  const named = { instance_id: present?.instance_id, agent_type };
  const stays = present !== null && (await isRoutable(tx, session.tenant_id, named));
  if (stays && body.instance_id !== undefined && body.instance_id !== present.instance_id) {
    throw new PlatformError('CONFLICT', 'The session has another agent of that type already.');
  }
  // A deregistration unbound the session, and its agent came back.
  const returns = session.instance_id === null && isOwn(session, agent_type);
  if (stays && !returns) return present;
  const agent = await chooseAgent(tx, session.tenant_id, stays ? named : { instance_id: body.instance_id, agent_type });
  return join(tx, session, agent, present ? 'failover' : 'invited');
}

/**
 * Adds an agent to a session (`/sessions/invite`): the one that it has for the type already, else the named instance, else the least
 * loaded. One that is gone is replaced. An invited agent that the session is not bound to counts only while it works.
 * @throws PlatformError NOT_FOUND (session, instance), SESSION_CLOSED, BAD_REQUEST (instance of another type), CONFLICT (the session has
 * another instance of the type), SERVICE_UNAVAILABLE (not routable), AGENT_AT_CAPACITY
 */
export async function inviteAgent(
  { db }: Pick<SessionDeps, 'db'>,
  caller: Caller,
  body: SessionInviteRequest,
): Promise<SessionAgent> {
  return db.tenant(caller.tenant_id, async (tx) => {
    const session = await lockSession(tx, caller.tenant_id, body.session_id);
    if (!session) throw new PlatformError('NOT_FOUND', 'There is no session of that session_id.');
    if (session.status !== 'active')
      throw new PlatformError('SESSION_CLOSED', `The session is already ${session.status}.`);
    return invite(tx, session, body);
  });
}
