import { importJWK, type JWK } from 'jose';

/** A signing key as it is stored; `retired` ones still verify. */
export interface StoredKey {
  kid: string;
  public_jwk: JWK;
  private_jwk: JWK;
  retired: boolean;
}

type ImportedKey = Awaited<ReturnType<typeof importJWK>>;
interface Loaded {
  atMs: number;
  keys: StoredKey[];
  active: { kid: string; privateKey: ImportedKey };
  verifying: Map<string, ImportedKey>;
}

const MAX_AGE_MS = 60_000;
const RELOAD_PAUSE_MS = 1_000;

/** The signing keys, kept for up to 60 s; an unknown `kid` reloads them, at most once a second. */
export class KeyRing {
  readonly #load: () => Promise<StoredKey[]>;
  #loaded: Loaded | undefined;
  #loading: Promise<Loaded> | undefined;

  /** @param load every key that still verifies, the active one among them */
  constructor(load: () => Promise<StoredKey[]>) {
    this.#load = load;
  }

  /** The key to sign with. */
  async active(): Promise<{ kid: string; privateKey: ImportedKey }> {
    return (await this.#current(MAX_AGE_MS)).active;
  }

  /** The key that verifies what `kid` signed; undefined when there is none. */
  async verifying(kid: string): Promise<ImportedKey | undefined> {
    const known = (await this.#current(MAX_AGE_MS)).verifying.get(kid);
    return known ?? (await this.#current(RELOAD_PAUSE_MS)).verifying.get(kid);
  }

  /** The public keys, as `/.well-known/jwks.json` shows them. */
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
    const keys = await this.#load();
    const active = keys.find((key) => !key.retired);
    if (!active) throw new Error('there is no active signing key');
    const verifying = await Promise.all(
      keys.map(async ({ kid, public_jwk }) => [kid, await importJWK(public_jwk, 'EdDSA')] as const),
    );
    this.#loaded = {
      atMs,
      keys,
      active: { kid: active.kid, privateKey: await importJWK(active.private_jwk, 'EdDSA') },
      verifying: new Map(verifying),
    };
    return this.#loaded;
  }
}
