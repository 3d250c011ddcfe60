import { createPrivateKey, type KeyObject } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { importJWK, type JWK } from 'jose';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';

/** What a key signs: access and dispatch tokens, or receipts of decisions, which no key of the other kind does. */
export type KeyKind = 'token' | 'receipt';

/** A signing key. A `retired` one still verifies. */
export interface StoredKey {
  kid: string;
  kind: KeyKind;
  public_jwk: JWK;
  retired: boolean;
  /** Decrypts the private half, which only the active key needs. @throws where this process does not have the key that sealed it */
  privateJwk: () => JWK;
}

/** A public key. Stays the same object while the stored key does not change. */
export type VerifyingKey = Awaited<ReturnType<typeof importJWK>>;
interface SigningKey {
  kid: string;
  privateKey: KeyObject;
}
interface Loaded {
  atMs: number;
  keys: StoredKey[];
  /** Keys of tokens. */
  verifying: Map<string, VerifyingKey>;
}

const MAX_AGE_MS = 60_000;
/** Keys that cannot be read again are used up to this age, so that a failed reading does not stop every caller. A key is deleted 300 s after its last use. */
const STALE_MS = 240_000;
const RELOAD_PAUSE_MS = 1_000;

/**
 * The signing keys, cached for 60 s. An unknown `kid` reloads them, at most once a second. Verifying needs the public halves alone: a private
 * half that this process cannot decrypt stops nobody's token.
 */
export class KeyRing {
  readonly #load: () => Promise<StoredKey[]>;
  readonly #log: Pick<Logger, 'warn'>;
  #loaded: Loaded | undefined;
  #loading: Promise<Loaded> | undefined;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  /** The keys to sign with. Each stays in use while its row is the active one. */
  readonly #signing: Partial<Record<KeyKind, SigningKey>> = {};

  /** @param load every key that still verifies, the active one among them */
  constructor(load: () => Promise<StoredKey[]>, log: Pick<Logger, 'warn'>) {
    this.#load = load;
    this.#log = log;
  }

  /** The key to sign with. @throws PlatformError SERVICE_UNAVAILABLE where its private half cannot be decrypted */
  async active(kind: KeyKind): Promise<SigningKey> {
    const { keys } = await this.#current(MAX_AGE_MS);
    const active = keys.find((key) => key.kind === kind && !key.retired);
    if (!active) throw new Error('there is no active signing key');
    const known = this.#signing[kind];
    if (known?.kid === active.kid) return known;
    const signing = { kid: active.kid, privateKey: privateKeyOf(active) };
    this.#signing[kind] = signing;
    return signing;
  }

  /** The key that verifies the tokens of `kid`; undefined where there is none. */
  async verifying(kid: string): Promise<VerifyingKey | undefined> {
    const known = (await this.#current(MAX_AGE_MS)).verifying.get(kid);
    return known ?? (await this.#current(RELOAD_PAUSE_MS)).verifying.get(kid);
  }

  /** The public keys for `/.well-known/jwks.json`. */
  async jwks(): Promise<{ keys: JWK[] }> {
    const { keys } = await this.#current(MAX_AGE_MS);
    return { keys: keys.map(({ kid, kind, public_jwk }) => ({ ...public_jwk, kid, use: 'sig', alg: 'EdDSA', kind })) };
  }

  async #current(maxAgeMs: number): Promise<Loaded> {
    const now = performance.now();
    const kept = this.#loaded && now - this.#loaded.atMs < STALE_MS ? this.#loaded : undefined;
    if (kept && (now - kept.atMs < maxAgeMs || now - this.#failedAtMs < RELOAD_PAUSE_MS)) return kept;
    this.#loading ??= this.#reload().finally(() => {
      this.#loading = undefined;
    });
    if (!kept) return this.#loading;
    return this.#loading.catch((error: unknown) => {
      this.#failedAtMs = performance.now();
      this.#log.warn(
        { err: errorMessage(error) },
        'the signing keys cannot be read again; those in memory stay in use',
      );
      return kept;
    });
  }

  async #reload(): Promise<Loaded> {
    const atMs = performance.now();
    const stored = await this.#load();
    const verifying = new Map<string, VerifyingKey>();
    for (const key of stored.filter(({ kind }) => kind === 'token')) {
      const imported = await this.#verifyingKey(key);
      if (imported) verifying.set(key.kid, imported);
    }
    const keys = stored.filter(({ kid, kind }) => kind === 'receipt' || verifying.has(kid));
    this.#loaded = { atMs, keys, verifying };
    return this.#loaded;
  }

  async #verifyingKey({ kid, public_jwk }: StoredKey): Promise<VerifyingKey | undefined> {
    const before = this.#loaded?.keys.find((key) => key.kid === kid);
    const imported = this.#loaded?.verifying.get(kid);
    if (imported && isDeepStrictEqual(before?.public_jwk, public_jwk)) return imported;
    return importJWK(public_jwk, 'EdDSA').catch((error: unknown) => {
      this.#log.warn({ kid, err: errorMessage(error) }, 'a signing key cannot be used: its tokens are refused');
      return undefined;
    });
  }
}

function privateKeyOf({ privateJwk }: StoredKey): KeyObject {
  try {
    return createPrivateKey({ key: privateJwk(), format: 'jwk' });
  } catch (error) {
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      'Tokens cannot be signed: the active signing key cannot be read with the secret key of this process.',
      { cause: error },
    );
  }
}
