import { errors, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { KeysUnavailableError } from './platform-keys.js';

const ALGORITHMS = ['EdDSA', 'Ed25519'];
const CLOCK_TOLERANCE_SECONDS = 5;

/** The tokens that a hosted agent trusts, from the answer to its registration. */
export interface TrustedPlatform {
  /** Address of the platform's public keys. */
  jwks_url: string;
  instance_id: string;
  tenant_id: string;
}

/** Why a token was refused, for the agent's log. */
export const TOKEN_REFUSALS = {
  missing: "a request without a token was refused: only the platform posts here, callers use the platform's /send",
  malformed: 'a request was refused: its bearer token is not one of the platform',
  keys_unavailable:
    "the platform's requests are refused because its keys cannot be fetched: is jwks_url reachable from here? For a certificate authority of its own set `ca` or FLEET_CA_FILE",
  unknown_key: 'a token was refused: none of the keys at jwks_url signed it; does another platform post here?',
  expired: "a token was refused as expired: do the clocks of this machine and the platform's agree?",
  other_agent:
    'a token was refused: it is for another instance or tenant; is `publicUrl` the address of this agent only?',
} as const;

export type TokenRefusal = keyof typeof TOKEN_REFUSALS;

/**
 * Checks the 60 s token that the mesh sends with every dispatch: it must be signed by the platform for this instance and this tenant.
 * The audience alone is not enough, because another tenant may have an instance with the same id.
 * @returns the reason of a refusal, with the error text; null for a valid token
 */
export async function refusalOf(
  authorization: string | undefined,
  { instance_id, tenant_id }: TrustedPlatform,
  keys: JWTVerifyGetKey,
): Promise<{ reason: TokenRefusal; error: string } | null> {
  const token = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1];
  if (token === undefined) return { reason: 'missing', error: 'there is no bearer token' };
  try {
    const { payload } = await jwtVerify(token, keys, {
      audience: instance_id,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      requiredClaims: ['exp', 'tenant_id'],
    });
    const isOurs = payload.tenant_id === tenant_id;
    return isOurs ? null : { reason: 'other_agent', error: 'the token is for another tenant' };
  } catch (error) {
    return { reason: reasonOf(error), error: error instanceof Error ? error.message : String(error) };
  }
}

function reasonOf(error: unknown): TokenRefusal {
  if (error instanceof KeysUnavailableError || error instanceof errors.JWKSInvalid) return 'keys_unavailable';
  if (error instanceof errors.JWTExpired) return 'expired';
  if (error instanceof errors.JWTClaimValidationFailed) return 'other_agent';
  const isForeign = error instanceof errors.JWSSignatureVerificationFailed || error instanceof errors.JWKSNoMatchingKey;
  return isForeign ? 'unknown_key' : 'malformed';
}
