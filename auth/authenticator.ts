import { LRUCache } from 'lru-cache';
import type { Caller } from '../contracts/api/auth.js';
import { PlatformError } from '../runtime/errors.js';
import type { Tokens } from './tokens.js';

/** Turns a bearer token into the caller it stands for. */
export interface Authenticator {
  /**
   * @throws PlatformError `unauthorized` for a token that is malformed or expired, or whose credential is revoked or expired or belongs to a
   * deleted tenant (noticed within 5 s); `SERVICE_UNAVAILABLE` while the database is away
   */
  authenticate(bearerToken: string): Promise<Caller>;
}

/** The state of a credential. */
export interface CredentialStatus {
  tenant_id: string;
  /** False when it was revoked or its tenant deleted. */
  usable: boolean;
  expires_at: Date | null;
}

/** A status of this age is read again. */
const REFRESH_MS = 2_000;
/** A status that cannot be read again is used up to this age. Ages count from the start of the read. */
const MAX_AGE_MS = 5_000;
/** Credentials whose statuses are kept. */
const STATUSES_MAX = 10_000;

interface Entry {
  readAtMs: number;
  status: CredentialStatus | null;
}

/** Cached statuses of credentials. Concurrent calls for one credential share a read. */
class StatusCache {
  readonly #lookup: (credentialId: string) => Promise<CredentialStatus | null>;
  readonly #entries = new LRUCache<string, Entry>({ max: STATUSES_MAX });
  readonly #reading = new Map<string, Promise<Entry>>();

  constructor(lookup: (credentialId: string) => Promise<CredentialStatus | null>) {
    this.#lookup = lookup;
  }

  async get(credentialId: string): Promise<CredentialStatus | null> {
    const known = this.#entries.get(credentialId);
    if (known && performance.now() - known.readAtMs < REFRESH_MS) return known.status;
    try {
      return (await this.#read(credentialId)).status;
    } catch (error) {
      if (known && performance.now() - known.readAtMs < MAX_AGE_MS) return known.status;
      throw error;
    }
  }

  #read(credentialId: string): Promise<Entry> {
    const reading =
      this.#reading.get(credentialId) ?? this.#readOnce(credentialId).finally(() => this.#reading.delete(credentialId));
    this.#reading.set(credentialId, reading);
    return reading;
  }

  async #readOnce(credentialId: string): Promise<Entry> {
    const readAtMs = performance.now();
    const entry = { readAtMs, status: await this.#lookup(credentialId) };
    this.#entries.set(credentialId, entry);
    return entry;
  }
}

/**
 * @param options.lookup the status of a credential; null when there is none
 */
export function createAuthenticator(options: {
  tokens: Pick<Tokens, 'verifyAccessToken'>;
  lookup: (credentialId: string) => Promise<CredentialStatus | null>;
}): Authenticator {
  const statuses = new StatusCache(options.lookup);
  return {
    authenticate: async (bearerToken) => {
      const claims = await options.tokens.verifyAccessToken(bearerToken);
      const status = await statuses.get(claims.credential_id);
      const expired = status?.expires_at ? status.expires_at.getTime() <= Date.now() : false;
      if (!status?.usable || expired || status.tenant_id !== claims.tenant_id) {
        throw new PlatformError('unauthorized', 'The credential of this access token is no longer valid.');
      }
      return claims;
    },
  };
}
