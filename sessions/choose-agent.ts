import { type Candidate, chooseBest, isRoutable, type NamedAgent } from '../agents/candidates.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';

async function checkKnown(tx: Tx, tenantId: string, instanceId: string, agentType: string | undefined): Promise<void> {
  const [known] = await tx.query<{ agent_type: string }>(
    'SELECT agent_type FROM agents WHERE tenant_id = $1 AND instance_id = $2',
    [tenantId, instanceId],
  );
  if (!known) throw new PlatformError('NOT_FOUND', 'There is no agent of that instance_id.');
  if (agentType !== undefined && known.agent_type !== agentType) {
    throw new PlatformError('BAD_REQUEST', 'agent_type: the instance is of another type.');
  }
}

/**
 * Chooses the agent for `/sessions/init` and `/sessions/invite`: the requested instance, else the least loaded one of the type. Its capacity
 * stays locked until the transaction ends.
 * @throws PlatformError NOT_FOUND (no such instance), BAD_REQUEST (instance of another type), SERVICE_UNAVAILABLE (not routable),
 * AGENT_AT_CAPACITY
 */
export async function chooseAgent(tx: Tx, tenantId: string, named: NamedAgent): Promise<Candidate> {
  if (named.instance_id !== undefined) await checkKnown(tx, tenantId, named.instance_id, named.agent_type);
  const agent = await chooseBest(tx, tenantId, named);
  if (agent) return agent;
  if (await isRoutable(tx, tenantId, named))
    throw new PlatformError('AGENT_AT_CAPACITY', 'The agent serves as many sessions as it may.');
  throw new PlatformError('SERVICE_UNAVAILABLE', 'No such agent can take a session now.');
}
