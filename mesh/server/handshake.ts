import type { IncomingMessage } from 'node:http';
import type { Authenticator } from '../../auth/authenticator.js';
import type { Caller } from '../../contracts/api/auth.js';
import { SUBPROTOCOL } from '../../contracts/frames.js';
import { isOwnType, mayActFor } from '../../contracts/permissions.js';
import { InstanceId } from '../../contracts/primitives.js';
import { PlatformError } from '../../runtime/errors.js';
import type { AuthenticatedAgent, InstanceLookup } from '../connection/connection-rows.js';

export const CONNECT_PATH = '/agents/connect';

/** What the handshake works with. */
export interface HandshakeDeps {
  authenticator: Authenticator;
  findInstance(tenantId: string, instanceId: string): Promise<InstanceLookup>;
  /** Whether an agent may not connect, because the node shuts down and runs no dispatch to it. */
  isClosedTo(agent: { tenant_id: string; instance_id: string }): boolean;
}

const WEBSOCKET_KEY = /^[A-Za-z0-9+/]{22}==$/;

/**
 * Checks an upgrade request in the order of decisions.md (WebSocket). The caller has checked that it came over TLS.
 * @throws PlatformError with the status and code of the refusal
 */
export async function checkHandshake(request: IncomingMessage, deps: HandshakeDeps): Promise<AuthenticatedAgent> {
  const [path, query] = (request.url ?? '').split('?', 2);
  if (path !== CONNECT_PATH) throw new PlatformError('NOT_FOUND', 'There is nothing here.');
  requireWebSocket(request);
  const instanceId = new URLSearchParams(query).get('instance_id') ?? '';
  if (instanceId === '') throw new PlatformError('MISSING_INSTANCE_ID', 'The query parameter instance_id is missing.');
  const subprotocols = (request.headers['sec-websocket-protocol'] ?? '').split(',');
  if (!subprotocols.some((name) => name.trim() === SUBPROTOCOL)) {
    throw new PlatformError('UNSUPPORTED_SUBPROTOCOL', `Offer the subprotocol ${SUBPROTOCOL}.`);
  }
  const { token, caller } = await authenticate(request, deps.authenticator);
  const agentType = await requireInstance(deps, caller, instanceId);
  // A token that may register the instance may also connect as it (specification section 4).
  if (!mayActFor(caller, agentType, 'full'))
    throw new PlatformError('forbidden', `Connecting needs the scope full, or a token of the agent type ${agentType}.`);
  if (deps.isClosedTo({ tenant_id: caller.tenant_id, instance_id: instanceId }))
    throw new PlatformError('SERVICE_UNAVAILABLE', 'The node is shutting down. Connect again.');
  return {
    tenant_id: caller.tenant_id,
    instance_id: instanceId,
    agent_type: agentType,
    credential_id: caller.credential_id,
    token,
    token_exp: caller.exp,
  };
}

function requireWebSocket(request: IncomingMessage): void {
  const { headers } = request;
  if (request.method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket') throw needsUpgrade();
  if (headers['sec-websocket-version'] !== '13' || !WEBSOCKET_KEY.test(headers['sec-websocket-key'] ?? '')) {
    throw new PlatformError('BAD_REQUEST', 'The WebSocket handshake is malformed.', {
      headers: { 'sec-websocket-version': '13' },
    });
  }
}

/** The error for a request that should be a WebSocket over TLS. */
export function needsUpgrade(): PlatformError {
  const message = 'Connect with a WebSocket over TLS (wss).';
  return new PlatformError('UPGRADE_REQUIRED', message, { headers: { upgrade: 'TLS/1.2, websocket' } });
}

function unauthorized(): PlatformError {
  const message = 'The bearer token is missing, invalid or expired.';
  return new PlatformError('UNAUTHORIZED', message, { headers: { 'www-authenticate': 'Bearer' } });
}

async function authenticate({ headers }: IncomingMessage, authenticator: Authenticator) {
  const [, token] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
  if (token === undefined) throw unauthorized();
  try {
    return { token, caller: await authenticator.authenticate(token) };
  } catch (error) {
    throw error instanceof PlatformError && error.code === 'unauthorized' ? unauthorized() : error;
  }
}

/** @returns the agent's type */
async function requireInstance(deps: HandshakeDeps, caller: Caller, instanceId: string): Promise<string> {
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
