import { exportJWK, generateKeyPair } from 'jose';
import type { StoredKey } from '../../auth/key-ring.js';

const OF_CREDENTIAL = { tenant_id: 'ten_1', agent_type: 'credential' };
/** What the tokens of a test say. */
export const CLAIMS = { ...OF_CREDENTIAL, scopes: ['read' as const], sub: 'c', credential_id: 'c' };

/** A signing key that is in use. */
export async function newKey(kid: string): Promise<StoredKey> {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  const privateJwk = await exportJWK(privateKey);
  return { kid, kind: 'token', public_jwk: await exportJWK(publicKey), privateJwk: () => privateJwk, retired: false };
}
