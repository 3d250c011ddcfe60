import { type AccessOptions, type Role, resolveAccess } from '../../access.js';
import { NodeTransport } from '../transport/node-transport.js';
import { PlatformApi } from './platform-api.js';
import { type Credentials, TokenSource } from './token-source.js';

/** The API as a program on Node calls it. */
export interface NodeApi {
  api: PlatformApi;
  /** The platform's certificate authority in PEM. */
  ca: string | undefined;
  credentials: Credentials;
}

/**
 * @param agentType the token's `agent_type` claim
 * @param role selects the credential of a local platform
 * @throws Error when an address or a credential is missing
 */
export function nodeApi(options: AccessOptions, agentType?: string, role: Role = 'caller'): NodeApi {
  const { url, ca, credentials } = resolveAccess(options, role);
  const transport = new NodeTransport(url, ca);
  return { api: new PlatformApi(transport, new TokenSource(transport, credentials, agentType)), ca, credentials };
}
