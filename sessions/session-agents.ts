import type { AgentWithRoom } from '../agents/agent-row.js';
import type { SessionAgent } from '../contracts/api/sessions.js';
import { queryJson } from '../db/json-rows.js';
import type { Tx } from '../db/pool.js';
import type { SessionRef } from './session-deps.js';

const COLUMNS = 'agent_type, instance_id, joined_at, join_reason';

/** All agents of a session, in the order in which they joined. */
export function agentsOf(tx: Tx, { tenant_id, session_id }: SessionRef): Promise<SessionAgent[]> {
  const select = `SELECT ${COLUMNS} FROM session_agents WHERE tenant_id = $1 AND session_id = $2`;
  return queryJson<SessionAgent>(tx, `${select} ORDER BY joined_at, instance_id`, [tenant_id, session_id]);
}

/** Records that an agent joins a session. An agent that joins again gets a new time and reason. */
export async function joinSession(
  tx: Tx,
  session: SessionRef,
  agent: AgentWithRoom,
  reason: 'init' | 'invited' | 'failover',
): Promise<SessionAgent> {
  const [joined] = await queryJson<SessionAgent>(
    tx,
    `INSERT INTO session_agents (tenant_id, session_id, agent_type, instance_id, join_reason) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (tenant_id, session_id, instance_id)
       DO UPDATE SET agent_type = excluded.agent_type, joined_at = excluded.joined_at, join_reason = excluded.join_reason
     RETURNING ${COLUMNS}`,
    [session.tenant_id, session.session_id, agent.agent_type, agent.instance_id, reason],
  );
  if (!joined) throw new Error('the joining agent was not written');
  return joined;
}
