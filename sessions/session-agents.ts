import type { ChosenAgent } from '../agents/agent-row.js';
import { unknownInstance } from '../agents/agents.js';
import type { SessionAgent } from '../contracts/api/sessions.js';
import { queryJson } from '../db/json-rows.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { SessionRef } from './session-deps.js';

const COLUMNS = 'agent_type, instance_id, joined_at, join_reason';

/** All agents of a session, in the order in which they joined. */
export function agentsOf(tx: Tx, { tenant_id, session_id }: SessionRef): Promise<SessionAgent[]> {
  const select = `SELECT ${COLUMNS} FROM session_members WHERE tenant_id = $1 AND session_id = $2`;
  return queryJson<SessionAgent>(tx, `${select} ORDER BY joined_at, instance_id`, [tenant_id, session_id]);
}

/** Records that an agent joins a locked session. An agent that joins again gets a new time and reason. */
export async function joinSession(
  tx: Tx,
  session: SessionRef,
  agent: ChosenAgent,
  reason: 'init' | 'invited' | 'failover',
): Promise<SessionAgent> {
  const [joined] = await queryJson<SessionAgent>(tx, `SELECT ${COLUMNS} FROM join_session($1, $2, $3, $4, $5)`, [
    session.tenant_id,
    session.session_id,
    agent.agent_type,
    agent.instance_id,
    reason,
  ]);
  if (!joined) throw new Error('the joining agent was not written');
  return joined;
}

/** The agent that a caller requests for a session: an instance, a type, or both. */
interface NamedAgent {
  instance_id?: string | undefined;
  agent_type?: string | undefined;
}

async function checkKnown(tx: Tx, tenantId: string, instanceId: string, agentType: string | undefined): Promise<void> {
  const [known] = await tx.query<{ agent_type: string }>(
    'SELECT agent_type FROM agents WHERE tenant_id = $1 AND instance_id = $2',
    [tenantId, instanceId],
  );
  if (!known) throw unknownInstance();
  if (agentType !== undefined && known.agent_type !== agentType) {
    throw new PlatformError('BAD_REQUEST', 'agent_type: the instance is of another type.');
  }
}

/** Whether a matching agent is registered and reachable, regardless of its load. */
export async function isRoutable(tx: Tx, tenantId: string, { instance_id, agent_type }: NamedAgent): Promise<boolean> {
  const found = await tx.query(
    `SELECT 1 FROM agents a WHERE a.tenant_id = $1 AND a.has_room IS NOT NULL AND ($2::text IS NULL OR a.instance_id = $2)
        AND ($3::text IS NULL OR a.agent_type = $3) LIMIT 1`,
    [tenantId, instance_id ?? null, agent_type ?? null],
  );
  return found.length > 0;
}

const BEST = 'SELECT instance_id, agent_type FROM choose_to_reserve($1, $2, $3)';

/** As `BEST`, but the agent need not have room. */
const ANY = `SELECT instance_id, agent_type FROM choose_routable($1, $2, $3)`;

/**
 * Runs a transaction that chooses an agent. If all agents were full, it is rolled back, and with it routing's note that they are. So the choice
 * is repeated in a transaction that commits the note: the next call then need not look at each agent.
 */
export async function choosing<T>(
  db: Db,
  tenantId: string,
  { instance_id, agent_type }: NamedAgent,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  try {
    return await db.tenant(tenantId, work);
  } catch (error) {
    const areFull = error instanceof PlatformError && error.code === 'AGENT_AT_CAPACITY';
    if (areFull && instance_id === undefined)
      await db.tenant(tenantId, (tx) => tx.query(BEST, [tenantId, null, agent_type ?? null]));
    throw error;
  }
}

/**
 * Chooses the agent for `/sessions/init` and `/sessions/invite`: the requested instance, else the least loaded one of the type.
 * @param reserves the agent must have room, which stays locked until the transaction ends
 * @throws PlatformError NOT_FOUND (no such instance), BAD_REQUEST (instance of another type), SERVICE_UNAVAILABLE (not routable),
 * AGENT_AT_CAPACITY
 */
export async function chooseAgent(
  tx: Tx,
  tenantId: string,
  named: NamedAgent,
  reserves: boolean,
): Promise<ChosenAgent> {
  const { instance_id, agent_type } = named;
  if (instance_id !== undefined) await checkKnown(tx, tenantId, instance_id, agent_type);
  const [agent] = await tx.query<ChosenAgent>(reserves ? BEST : ANY, [
    tenantId,
    instance_id ?? null,
    agent_type ?? null,
  ]);
  if (agent) return agent;
  if (await isRoutable(tx, tenantId, named))
    throw new PlatformError('AGENT_AT_CAPACITY', 'The agent serves as many sessions as it may.');
  throw new PlatformError('SERVICE_UNAVAILABLE', 'No such agent can take a session now.');
}
