import type { DispatchAuth, ShownDispatchAuth } from '../contracts/api/dispatch-auth.js';
import type { Tx } from '../db/pool.js';
import { holdSecretKey } from '../db/secret-key.js';
import { SEALED } from '../runtime/sealed-columns.js';
import type { Secrets } from '../runtime/secrets.js';

const { purpose: PURPOSE } = SEALED.agentCredentials;

/** A credential that an agent requires of the platform in place of the platform's own token. */
export type AgentCredential = Exclude<DispatchAuth, { type: 'bearer_jwt' }>;

/** How the platform authenticates to an agent, as answers show it. */
export function shownAuth(auth: DispatchAuth | undefined): ShownDispatchAuth {
  switch (auth?.type) {
    case undefined:
    case 'bearer_jwt':
      return { type: 'bearer_jwt' };
    case 'api_key': {
      const { value: _secret, ...shown } = auth;
      return shown;
    }
    case 'oauth2_client_credentials': {
      const { client_secret: _secret, ...shown } = auth;
      return shown;
    }
    default:
      return auth satisfies never;
  }
}

/** Encrypts the credential of an agent, in the transaction that stores it; null where the platform sends its own token. */
export async function sealCredential(
  tx: Tx,
  secrets: Pick<Secrets, 'encrypt' | 'activate'>,
  auth: DispatchAuth | undefined,
): Promise<Buffer | null> {
  if (auth === undefined || auth.type === 'bearer_jwt') return null;
  await holdSecretKey(tx, secrets);
  return secrets.encrypt(JSON.stringify(auth), PURPOSE);
}

/** @throws UnreadableValue when the data was altered or encrypted with another key */
export function unsealCredential(secrets: Pick<Secrets, 'decrypt'>, sealed: Buffer): AgentCredential {
  return JSON.parse(secrets.decrypt(sealed, PURPOSE).toString()) as AgentCredential;
}
