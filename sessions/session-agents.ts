import type { SessionAgent } from '../contracts/sessions.js';
import type { Tx } from '../db/pool.js';
import type { SessionRef } from './session-ref.js';

interface MemberRow {
  agent_type: string;
  instance_id: string;
  joined_at: Date;
  join_reason: string;
}

function memberOf(row: MemberRow): SessionAgent {
  return { ...row, joined_at: row.joined_at.toISOString() };
}

/** The agent that a session has for a type: the one that joined last; null for none. */
export async function agentOfType(tx: Tx, session: SessionRef, agentType: string | null): Promise<SessionAgent | null> {
  const [row] = await tx.query<MemberRow & Record<string, unknown>>(
    `SELECT agent_type, instance_id, joined_at, join_reason FROM session_agents
      WHERE tenant_id = $1 AND session_id = $2 AND agent_type = $3 ORDER BY joined_at DESC LIMIT 1`,
    [session.tenant_id, session.session_id, agentType],
    'member_of_type',
  );
  return row ? memberOf(row) : null;
}

/** Every agent that joined a session, in the order in which they did. */
export async function agentsOf(tx: Tx, session: SessionRef): Promise<SessionAgent[]> {
  const rows = await tx.query<MemberRow & Record<string, unknown>>(
    `SELECT agent_type, instance_id, joined_at, join_reason FROM session_agents
      WHERE tenant_id = $1 AND session_id = $2 ORDER BY joined_at, instance_id`,
    [session.tenant_id, session.session_id],
  );
  return rows.map(memberOf);
}

/** Writes that an agent joins; one that was there before is there from now on. */
export async function joinSession(
  tx: Tx,
  session: SessionRef,
  agent: Pick<SessionAgent, 'agent_type' | 'instance_id'>,
  reason: 'init' | 'invited' | 'failover',
): Promise<SessionAgent> {
  const [row] = await tx.query<MemberRow & Record<string, unknown>>(
    `INSERT INTO session_agents (tenant_id, session_id, agent_type, instance_id, join_reason) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (tenant_id, session_id, instance_id)
       DO UPDATE SET agent_type = excluded.agent_type, joined_at = excluded.joined_at, join_reason = excluded.join_reason
     RETURNING agent_type, instance_id, joined_at, join_reason`,
    [session.tenant_id, session.session_id, agent.agent_type, agent.instance_id, reason],
  );
  if (!row) throw new Error('an agent that joined was not written');
  return memberOf(row);
}
