import type { SessionAgent } from '../contracts/api/sessions.js';
import type { Tx } from '../db/pool.js';
import type { SessionRef } from './session-deps.js';

interface MemberRow extends Record<string, unknown> {
  agent_type: string;
  instance_id: string;
  joined_at: Date;
  join_reason: string;
}

const COLUMNS = 'agent_type, instance_id, joined_at, join_reason';

function memberOf(row: MemberRow): SessionAgent {
  return { ...row, joined_at: row.joined_at.toISOString() };
}

/** The agent of a type in a session: the one that joined last; null for none. */
export async function agentOfType(tx: Tx, session: SessionRef, agentType: string | null): Promise<SessionAgent | null> {
  const [row] = await tx.query<MemberRow>(
    `SELECT ${COLUMNS} FROM session_agents
      WHERE tenant_id = $1 AND session_id = $2 AND agent_type = $3 ORDER BY joined_at DESC LIMIT 1`,
    [session.tenant_id, session.session_id, agentType],
    'member_of_type',
  );
  return row ? memberOf(row) : null;
}

/** All agents of a session, in the order in which they joined. */
export async function agentsOf(tx: Tx, session: SessionRef): Promise<SessionAgent[]> {
  const rows = await tx.query<MemberRow>(
    `SELECT ${COLUMNS} FROM session_agents
      WHERE tenant_id = $1 AND session_id = $2 ORDER BY joined_at, instance_id`,
    [session.tenant_id, session.session_id],
  );
  return rows.map(memberOf);
}

/** Records that an agent joins a session. An agent that joins again gets a new time and reason. */
export async function joinSession(
  tx: Tx,
  session: SessionRef,
  agent: Pick<SessionAgent, 'agent_type' | 'instance_id'>,
  reason: 'init' | 'invited' | 'failover',
): Promise<SessionAgent> {
  const [row] = await tx.query<MemberRow>(
    `INSERT INTO session_agents (tenant_id, session_id, agent_type, instance_id, join_reason) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (tenant_id, session_id, instance_id)
       DO UPDATE SET agent_type = excluded.agent_type, joined_at = excluded.joined_at, join_reason = excluded.join_reason
     RETURNING ${COLUMNS}`,
    [session.tenant_id, session.session_id, agent.agent_type, agent.instance_id, reason],
  );
  if (!row) throw new Error('the joining agent was not written');
  return memberOf(row);
}
