import { LRUCache } from 'lru-cache';
import type { Caller } from '../contracts/api/auth.js';
import type { Clocks } from '../runtime/clocks.js';
import { PlatformError } from '../runtime/errors.js';
import type { Tokens } from './tokens.js';

/** The state of a credential. */
export interface CredentialStatus {
  /** Null of an operator of the platform. */
  tenant_id: string | null;
  /** False when it was revoked, its tenant, or that of an operator's token, deleted, or the session of the console ended. */
  usable: boolean;
  expires_at: Date | null;
  /** Of a token that is limited to a user: those of earlier epochs were revoked. */
  user_epoch?: number | null;
}

/** A status that cannot be read again is used up to this age. Ages count from the start of the read. */
const MAX_AGE_MS = 5_000;
/** Credentials whose statuses are kept. */
const STATUSES_MAX = 10_000;

interface Entry {
  readAtMs: number;
  status: CredentialStatus | null;
}

const isYounger = (entry: Entry | undefined, ms: number): entry is Entry =>
  entry !== undefined && performance.now() - entry.readAtMs < ms;

/** What the status of a credential depends on besides it. */
export interface TokenOf {
  /** The tenant of an operator's token; of another credential, its own or ''. */
  tenantId: string;
  /** The user that the token is limited to. */
  userId?: string | undefined;
  /** The session of the console that the token is of. */
  consoleSession?: string | undefined;
}

/** @param options.lookup the status of a credential, for such a token; null when there is none */
export function createAuthenticator(options: {
  tokens: Pick<Tokens, 'verifyAccessToken'>;
  lookup: (credentialId: string, token: TokenOf) => Promise<CredentialStatus | null>;
  clocks: Pick<Clocks, 'credentialCheckMs'>;
}) {
  /** Concurrent calls for one credential share a read. */
  const statuses = new LRUCache<string, Entry, TokenOf & { credentialId: string }>({
    max: STATUSES_MAX,
    ignoreFetchAbort: true, // a read goes on when its entry is evicted
    fetchMethod: async (_key, known, { context: { credentialId, ...token } }) => {
      const readAtMs = performance.now();
      try {
        return { readAtMs, status: await options.lookup(credentialId, token) };
      } catch (error) {
        if (isYounger(known, MAX_AGE_MS)) return known; // keeps the time of its read
        throw error;
      }
    },
  });
  const statusOf = async (claims: Caller): Promise<CredentialStatus | null> => {
    const token = { tenantId: claims.tenant_id, userId: claims.user_id, consoleSession: claims.console_session };
    const context = { credentialId: claims.credential_id, ...token };
    const key = JSON.stringify(context);
    const known = statuses.get(key);
    if (isYounger(known, options.clocks.credentialCheckMs)) return known.status;
    // Joins a read that is under way.
    return (await statuses.forceFetch(key, { forceRefresh: true, context })).status;
  };
  return {
    /**
     * Turns a bearer token into the caller it stands for.
     * @throws PlatformError `unauthorized` for a token that is malformed or expired, or whose credential or user is revoked, or credential expired, or of
     * a deleted tenant (noticed within 5 s); `SERVICE_UNAVAILABLE` while the database is away
     */
    authenticate: async (bearerToken: string): Promise<Caller> => {
      const claims = await options.tokens.verifyAccessToken(bearerToken);
      const status = await statusOf(claims);
      const expired = status?.expires_at ? status.expires_at.getTime() <= Date.now() : false;
      if (!status?.usable || expired || (status.tenant_id ?? claims.tenant_id) !== claims.tenant_id) {
        throw new PlatformError('unauthorized', 'The credential of this access token is no longer valid.');
      }
      if ((claims.user_epoch ?? 0) < (status.user_epoch ?? 0))
        throw new PlatformError('unauthorized', 'The tokens of this user were revoked.');
      return claims;
    },
  };
}

/** Authenticates callers by their bearer tokens. */
export type Authenticator = ReturnType<typeof createAuthenticator>;
