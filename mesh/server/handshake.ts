import type { IncomingMessage } from 'node:http';
import { CONNECT_PATH, SUBPROTOCOL } from '../../contracts/frames.js';
import { PlatformError } from '../../runtime/errors.js';
import { unauthorized } from '../connection/authorize.js';
import type { AuthenticatedAgent } from '../connection/connection-rows.js';

/** What the handshake works with. */
export interface HandshakeDeps {
  /** Checks that the token may hold the instance's socket. @throws PlatformError */
  authorize(token: string, instanceId: string): Promise<AuthenticatedAgent>;
  /** Whether an agent may not connect, because the node shuts down and runs no dispatch to it. */
  isClosedTo(agent: { tenant_id: string; instance_id: string }): boolean;
}

const WEBSOCKET_KEY = /^[A-Za-z0-9+/]{22}==$/;

/**
 * Checks an upgrade request in the order in which its errors are documented. The caller has checked that it came over TLS.
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
  const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
  if (token === undefined) throw unauthorized();
  const agent = await deps.authorize(token, instanceId);
  if (deps.isClosedTo(agent))
    throw new PlatformError('SERVICE_UNAVAILABLE', 'The node is shutting down. Connect again.');
  return agent;
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
