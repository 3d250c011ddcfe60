import { exportJWK, generateKeyPair } from 'jose';
import type { StoredKey } from '../../auth/key-ring.js';

/** A signing key that is in use. */
export async function newKey(kid: string): Promise<StoredKey> {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  const privateJwk = await exportJWK(privateKey);
  return { kid, kind: 'token', public_jwk: await exportJWK(publicKey), privateJwk: () => privateJwk, retired: false };
}
