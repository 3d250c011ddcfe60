import { isDeepStrictEqual } from 'node:util';
import { type RegisteredAgent, registrationRequest } from '../../agents/registration-policy.js';
import type { HelloPayload } from '../../contracts/frames.js';
import type { Tx } from '../../db/pool.js';
import { enforce } from '../../policy/enforce.js';
import type { DecisionEvent } from '../../policy/verdict.js';
import type { AuthenticatedAgent } from './connection-rows.js';
import type { MeshContext } from './context.js';

async function readRegistered(
  tx: Tx,
  { tenant_id, instance_id }: AuthenticatedAgent,
): Promise<RegisteredAgent | undefined> {
  const [row] = await tx.query<RegisteredAgent>(
    `SELECT agent_type, instance_id, deployment_mode, public_url, skills, tools, agent_card, context FROM agents
      WHERE tenant_id = $1 AND instance_id = $2`,
    [tenant_id, instance_id],
  );
  return row;
}

/**
 * Asks the policies of registrations about what a `hello` changes of one: skills, tools, the card.
 * @returns events to be written with the connection
 * @throws PlatformError forbidden, which is recorded; SERVICE_UNAVAILABLE while the policies cannot be read or evaluated
 */
export async function decideHello(
  { db, policies, register }: Pick<MeshContext, 'db' | 'policies' | 'register'>,
  agent: AuthenticatedAgent,
  { skills, tools, agent_card }: HelloPayload,
): Promise<DecisionEvent[]> {
  const { tenant_id, claims } = agent;
  const given = { ...(skills && { skills }), ...(tools && { tools }), ...(agent_card && { agent_card }) };
  if (Object.keys(given).length === 0 || !policies.concerns(tenant_id, 'admission')) return [];
  const registered = await register(tenant_id, () => db.tenant(tenant_id, (tx) => readRegistered(tx, agent)));
  if (!registered) return []; // `openConnection` refuses an instance without a row
  const changed = { ...registered, ...given };
  if (isDeepStrictEqual(changed, registered)) return [];
  return enforce({ db, policies }, tenant_id, registrationRequest(claims, changed));
}
