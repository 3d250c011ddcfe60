import { createHash } from 'node:crypto';
import type { TokenClaims } from '../contracts/auth.js';

/** Beyond this many tokens the one that was used longest ago is forgotten. */
const MAX_ENTRIES = 10_000;

interface Entry<Key> {
  kid: string;
  key: Key;
  claims: TokenClaims;
}

/**
 * The claims of tokens whose signature was good, so that a token costs one verification (400 µs) and then a digest (3 µs) per call.
 * Kept by digest: no token stays in memory. What is found here still has to be checked against the keys of the moment.
 */
export class VerifiedTokens<Key> {
  readonly #maxEntries: number;
  /** The one that was used longest ago first. */
  readonly #entries = new Map<string, Entry<Key>>();

  constructor(maxEntries = MAX_ENTRIES) {
    this.#maxEntries = maxEntries;
  }

  /** What was learned of this token; undefined when nothing was, or it has expired. */
  find(token: string): Entry<Key> | undefined {
    const digest = digestOf(token);
    const entry = this.#entries.get(digest);
    if (!entry) return undefined;
    this.#entries.delete(digest);
    if (entry.claims.exp <= Math.floor(Date.now() / 1_000)) return undefined;
    this.#entries.set(digest, entry);
    return entry;
  }

  /** Keeps the claims of a token that `key` has just verified. Callers share them: they are frozen. */
  keep(token: string, entry: Entry<Key>): void {
    Object.freeze(entry.claims.scopes);
    Object.freeze(entry.claims);
    this.#entries.set(digestOf(token), entry);
    if (this.#entries.size <= this.#maxEntries) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }
}

function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}
