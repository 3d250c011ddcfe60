import { type Candidate, candidates, claimBest, claimRoom, lockRoom } from '../../agents/candidates.js';
import type { Tx } from '../../db/pool.js';
import { agentOfType } from '../../sessions/session-agents.js';
import type { MessageRow } from '../read/rows.js';

/** Candidates as a message sees them: one that carries a decision goes ahead of new work, and no room is kept from it. */
function seen(row: MessageRow, found: Candidate[]): Candidate[] {
  return row.resolution === null ? found : found.map((candidate) => ({ ...candidate, reserved: 0 }));
}

/** The session a message belongs to, as far as routing needs it. */
export interface SessionBinding {
  explicit: boolean;
  instance_id: string | null;
  agent_type: string | null;
}

/** Where the message goes, and how the session is bound by it. */
export interface Route {
  agent: Candidate;
  /** `null`: the session was bound to it before. */
  join_reason: 'routed' | 'failover' | null;
}

/** The instance that has served this message or session so far, if one has. */
async function boundInstance(
  tx: Tx,
  row: MessageRow,
  session: SessionBinding,
): Promise<{ instance_id: string; agent_type: string } | null> {
  if (row.instance_id !== null && row.agent_type !== null)
    return { instance_id: row.instance_id, agent_type: row.agent_type };
  const type = row.want_agent_type ?? session.agent_type;
  if (session.instance_id !== null && session.agent_type !== null && session.agent_type === type) {
    return { instance_id: session.instance_id, agent_type: session.agent_type };
  }
  return agentOfType(tx, row, type);
}

/** Whether the session is counted on the instance already, so that one more of its messages takes no further room. */
async function holdsSlot(tx: Tx, row: MessageRow, session: SessionBinding, instanceId: string): Promise<boolean> {
  const [found] = await tx.query<{ suspended: boolean; holds: boolean }>(
    `SELECT coalesce(bool_or(suspends_session), false) AS suspended,
            coalesce(bool_or(holds_slot AND instance_id = $3), false) AS holds
       FROM messages WHERE tenant_id = $1 AND session_id = $2 AND (suspends_session OR holds_slot)`,
    [row.tenant_id, row.session_id, instanceId],
  );
  const bound = session.explicit && session.instance_id === instanceId && found?.suspended !== true;
  return bound || found?.holds === true;
}

async function routeFirst(tx: Tx, row: MessageRow, session: SessionBinding): Promise<Route | null> {
  const found = await candidates(tx, row.tenant_id, {
    instance_id: row.want_instance_id,
    agent_type: row.want_agent_type ?? session.agent_type,
    skill_id: row.want_skill_id,
    message_id: row.message_id,
  });
  const agent = await claimBest(tx, row.tenant_id, seen(row, found));
  return agent && { agent, join_reason: 'routed' };
}

/**
 * Chooses the agent of a message (a2a.md): the task's instance, else the session's, else what the message asks for, else the least
 * loaded. A bound instance that is gone, or that cannot be reached, is replaced by another of its type that has the skill; one that the
 * message names is tried again. Null: none is free now.
 */
export async function routeMessage(tx: Tx, row: MessageRow, session: SessionBinding): Promise<Route | null> {
  const bound = await boundInstance(tx, row, session);
  if (!bound) return routeFirst(tx, row, session);
  const { message_id } = row;
  const isNamed = row.want_instance_id === bound.instance_id;
  const [same] = seen(row, await candidates(tx, row.tenant_id, { ...bound, message_id }));
  if (same && (isNamed || !same.unreachable)) {
    await lockRoom(tx, row.tenant_id, same);
    const room = (await holdsSlot(tx, row, session, same.instance_id)) || (await claimRoom(tx, row.tenant_id, same));
    // Deregistration unbinds a session; its instance came back.
    const returns = session.explicit && session.instance_id === null;
    return room ? { agent: same, join_reason: returns ? 'failover' : null } : null;
  }
  // Who names an instance means that one.
  if (isNamed) return null;
  const { agent_type } = bound;
  const others = await candidates(tx, row.tenant_id, { agent_type, skill_id: row.want_skill_id, message_id });
  const agent = await claimBest(tx, row.tenant_id, seen(row, others));
  return agent && { agent, join_reason: agent.instance_id === bound.instance_id ? null : 'failover' };
}
