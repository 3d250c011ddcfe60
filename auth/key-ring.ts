import { createPrivateKey, type KeyObject } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { importJWK, type JWK } from 'jose';

/** A signing key. A `retired` one still verifies. */
export interface StoredKey {
  kid: string;
  public_jwk: JWK;
  private_jwk: JWK;
  retired: boolean;
}

/** A public key. Stays the same object while the stored key does not change. */
export type VerifyingKey = Awaited<ReturnType<typeof importJWK>>;
interface Loaded {
  atMs: number;
  keys: StoredKey[];
  active: { kid: string; privateKey: KeyObject };
  verifying: Map<string, VerifyingKey>;
}

const MAX_AGE_MS = 60_000;
const RELOAD_PAUSE_MS = 1_000;

/** The signing keys, cached for 60 s. An unknown `kid` reloads them, at most once a second. */
export class KeyRing {
  #loaded: Loaded | undefined;
  #loading: Promise<Loaded> | undefined;

  /** @param load every key that still verifies, the active one among them */
  constructor(private readonly load: () => Promise<StoredKey[]>) {}

  /** The key to sign with. */
  async active(): Promise<Loaded['active']> {
    return (await this.#current(MAX_AGE_MS)).active;
  }

  /** The key that verifies the signatures of `kid`; undefined where there is none. */
  async verifying(kid: string): Promise<VerifyingKey | undefined> {
    const known = (await this.#current(MAX_AGE_MS)).verifying.get(kid);
    return known ?? (await this.#current(RELOAD_PAUSE_MS)).verifying.get(kid);
  }

  /** The public keys for `/.well-known/jwks.json`. */
  async jwks(): Promise<{ keys: JWK[] }> {
    const { keys } = await this.#current(MAX_AGE_MS);
    return { keys: keys.map(({ kid, public_jwk }) => ({ ...public_jwk, kid, use: 'sig', alg: 'EdDSA' })) };
  }

  async #current(maxAgeMs: number): Promise<Loaded> {
    if (this.#loaded && performance.now() - this.#loaded.atMs < maxAgeMs) return this.#loaded;
    this.#loading ??= this.#reload().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #reload(): Promise<Loaded> {
    const atMs = performance.now();
    const keys = await this.load();
    const active = keys.find((key) => !key.retired);
    if (!active) throw new Error('there is no active signing key');
    const verifying = await Promise.all(keys.map(async (key) => [key.kid, await this.#verifyingKey(key)] as const));
    this.#loaded = {
      atMs,
      keys,
      active: { kid: active.kid, privateKey: createPrivateKey({ key: active.private_jwk, format: 'jwk' }) },
      verifying: new Map(verifying),
    };
    return this.#loaded;
  }

  async #verifyingKey({ kid, public_jwk }: StoredKey): Promise<VerifyingKey> {
    const before = this.#loaded?.keys.find((key) => key.kid === kid);
    const imported = this.#loaded?.verifying.get(kid);
    if (imported && isDeepStrictEqual(before?.public_jwk, public_jwk)) return imported;
    return importJWK(public_jwk, 'EdDSA');
  }
}
