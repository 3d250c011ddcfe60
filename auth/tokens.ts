import { hash, type KeyObject, randomUUID, sign as signBytes } from 'node:crypto';
import { errors, type JWTHeaderParameters, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { TokenClaims } from '../contracts/api/auth.js';
import type { Receipt } from '../contracts/api/policies/requests.js';
import { LIMITS } from '../contracts/limits.js';
import { PlatformError } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { KeyRing, type StoredKey, type VerifyingKey } from './key-ring.js';
import { RECEIPT_TYPE } from './receipts.js';

/** Tells access tokens from other tokens that the same keys sign (RFC 9068). */
const ACCESS_TOKEN_TYPE = 'at+jwt';
/** Tokens whose claims are kept after a verification. */
const VERIFIED_MAX = 10_000;

/** The claims of a token and the key that verified its signature. */
interface Verified {
  kid: string;
  key: VerifyingKey;
  claims: TokenClaims;
}

function jwtSegment(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/**
 * A signed JWT in compact form (RFC 7515, EdDSA of RFC 8037). Our own, because every dispatch to a hosted agent carries one: jose signs by Web
 * Crypto in 250 µs of CPU, this takes 50. jose verifies all tokens.
 */
function signJwt(header: { kid: string; typ: string }, payload: object, privateKey: KeyObject): string {
  const input = `${jwtSegment({ alg: 'EdDSA', ...header })}.${jwtSegment(payload)}`;
  return `${input}.${signBytes(null, Buffer.from(input), privateKey).toString('base64url')}`;
}

/**
 * @param options.loadKeys every signing key that still verifies
 * @param options.issuer the claim `iss`. It is not verified: the address of a platform may change while tokens live
 */
export function createTokens(options: {
  loadKeys: () => Promise<StoredKey[]>;
  issuer?: () => string;
  log: Pick<Logger, 'warn'>;
}) {
  const ring = new KeyRing(options.loadKeys, options.log);
  /** By digest, so that no token stays in memory. A verification costs 400 µs, a digest 3 µs. */
  const verified = new LRUCache<string, Verified>({ max: VERIFIED_MAX });

  const sign = async (payload: object, typ: string, lifetimeSeconds: number): Promise<string> => {
    const { kid, privateKey } = await ring.active('token');
    const now = Math.floor(Date.now() / 1000);
    const issuer = options.issuer ? { iss: options.issuer() } : {};
    return signJwt({ kid, typ }, { ...issuer, ...payload, iat: now, exp: now + lifetimeSeconds }, privateKey);
  };

  const keyOf = async ({ kid }: JWTHeaderParameters) => {
    const key = kid === undefined ? undefined : await ring.verifying(kid);
    if (key === undefined) throw new PlatformError('unauthorized', 'The access token is signed with an unknown key.');
    return key;
  };

  /** Kept claims count only while their key still verifies: a key that is taken away ends its tokens. */
  const known = async (digest: string): Promise<TokenClaims | undefined> => {
    const entry = verified.get(digest);
    if (!entry || entry.claims.exp <= Math.floor(Date.now() / 1_000)) return undefined;
    return (await ring.verifying(entry.kid)) === entry.key ? entry.claims : undefined;
  };

  /** Callers share the claims, so they are frozen. */
  const verify = async (token: string, digest: string): Promise<TokenClaims | undefined> => {
    const { payload, protectedHeader, key } = await jwtVerify(token, keyOf, {
      algorithms: ['EdDSA'],
      typ: ACCESS_TOKEN_TYPE,
    });
    const { data: claims } = TokenClaims.safeParse(payload);
    if (!claims) return undefined;
    Object.freeze(claims.scopes);
    Object.freeze(claims);
    verified.set(digest, { kid: protectedHeader.kid ?? '', key, claims });
    return claims;
  };

  return {
    /** A JWT with `claims`, valid from now. */
    issueAccessToken: (claims: Omit<TokenClaims, 'iat' | 'exp'>, expiresInSeconds: number): Promise<string> =>
      sign({ ...claims, jti: randomUUID() }, ACCESS_TOKEN_TYPE, expiresInSeconds),
    /** Proves to a hosted agent that a dispatch comes from the platform: valid for 60 s, its audience is the instance. */
    issueDispatchToken: (dispatch: {
      tenant_id: string;
      instance_id: string;
      dispatch_id: string;
    }): Promise<string> => {
      const { tenant_id, instance_id, dispatch_id } = dispatch;
      const claims = { aud: instance_id, sub: dispatch_id, tenant_id, dispatch_id };
      return sign(claims, 'JWT', LIMITS.hostedTokenSeconds);
    },
    /** A receipt of a decision: a JWS that holds for ever, by a key that signs nothing else. */
    issueReceipt: async (receipt: Receipt): Promise<string> => {
      const { kid, privateKey } = await ring.active('receipt');
      return signJwt({ kid, typ: RECEIPT_TYPE }, receipt, privateKey);
    },
    /** The public keys that verify all of these. */
    jwks: () => ring.jwks(),
    /**
     * The claims of a valid access token.
     * @throws PlatformError `unauthorized`; `SERVICE_UNAVAILABLE` while the keys cannot be read
     */
    verifyAccessToken: async (token: string): Promise<TokenClaims> => {
      const digest = hash('sha256', token, 'base64');
      try {
        const claims = (await known(digest)) ?? (await verify(token, digest));
        if (claims) return claims;
      } catch (error) {
        if (!(error instanceof errors.JOSEError)) throw error;
      }
      throw new PlatformError('unauthorized', 'The access token is not valid, or has expired.');
    },
  };
}

/** Issues and verifies tokens. */
export type Tokens = ReturnType<typeof createTokens>;

/** Issues tokens. */
export type TokenIssuer = Omit<Tokens, 'verifyAccessToken'>;
