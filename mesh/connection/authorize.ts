import type { Authenticator } from '../../auth/authenticator.js';
import type { Caller } from '../../contracts/api/auth.js';
import { isLimited, isOwnType, mayActFor } from '../../contracts/permissions.js';
import { InstanceId } from '../../contracts/primitives.js';
import { tokenFacts } from '../../policy/token-facts.js';
import { PlatformError } from '../../runtime/errors.js';
import type { AuthenticatedAgent, InstanceLookup } from './connection-rows.js';

/** What the check of an agent's token works with. */
export interface AuthorizeDeps {
  authenticator: Authenticator;
  findInstance(tenantId: string, instanceId: string): Promise<InstanceLookup>;
}

/**
 * Checks that a token may hold the socket of an instance: at the handshake, and for a `reauth` frame.
 * @throws PlatformError `UNAUTHORIZED`, `TENANT_MISMATCH`, `INSTANCE_NOT_FOUND`, `DEREGISTERED`, `DEPLOYMENT_MODE_MISMATCH`, `forbidden`;
 * `SERVICE_UNAVAILABLE` while the database is away
 */
export async function authorizeAgent(
  token: string,
  instanceId: string,
  deps: AuthorizeDeps,
): Promise<AuthenticatedAgent> {
  const caller = await authenticate(token, deps.authenticator);
  if (isLimited(caller)) throw new PlatformError('forbidden', 'A token with limits connects no agent.');
  const agentType = await requireInstance(deps, caller, instanceId);
  // A token that may register the instance may also connect as it.
  if (!mayActFor(caller, agentType, 'full'))
    throw new PlatformError('forbidden', `Connecting needs the scope full, or a token of the agent type ${agentType}.`);
  return {
    tenant_id: caller.tenant_id,
    instance_id: instanceId,
    agent_type: agentType,
    credential_id: caller.credential_id,
    token,
    token_exp: caller.exp,
    claims: tokenFacts(caller),
  };
}

/** The error for a token that is missing or not valid. */
export function unauthorized(): PlatformError {
  const message = 'The bearer token is missing, invalid or expired.';
  return new PlatformError('UNAUTHORIZED', message, { headers: { 'www-authenticate': 'Bearer' } });
}

async function authenticate(token: string, authenticator: Authenticator): Promise<Caller> {
  try {
    return await authenticator.authenticate(token);
  } catch (error) {
    throw error instanceof PlatformError && error.code === 'unauthorized' ? unauthorized() : error;
  }
}

/** @returns the agent's type */
async function requireInstance(deps: AuthorizeDeps, caller: Caller, instanceId: string): Promise<string> {
  const wellFormed = InstanceId.safeParse(instanceId).success;
  const instance: InstanceLookup = wellFormed
    ? await deps.findInstance(caller.tenant_id, instanceId)
    : { found: false, of_other_tenant: false };
  if (!instance.found && instance.of_other_tenant) {
    throw new PlatformError('TENANT_MISMATCH', 'The instance belongs to another tenant than the token.');
  }
  if (!instance.found || !isOwnType(caller, instance.agent_type))
    throw new PlatformError('INSTANCE_NOT_FOUND', 'Register the instance before it connects.');
  if (instance.deregistered) throw new PlatformError('DEREGISTERED', 'The instance was deregistered.');
  if (instance.deployment_mode !== 'connected') {
    throw new PlatformError('DEPLOYMENT_MODE_MISMATCH', `The instance is registered as ${instance.deployment_mode}.`);
  }
  if (!instance.may_join) {
    throw new PlatformError('forbidden', `Agents of the type ${instance.agent_type} may not join this tenant.`);
  }
  return instance.agent_type;
}
