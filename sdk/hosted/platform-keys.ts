import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from 'jose';
import { withRetries } from '../client/api/retries.js';
import { NodeTransport } from '../client/transport/node-transport.js';
import { readJson } from '../client/transport/transport.js';

/** Minimum interval between two fetches for unknown keys: keys are rotated, but strangers must not cause requests at will. */
const COOLDOWN_MS = 1_000;

/** The platform's keys could not be fetched. */
export class KeysUnavailableError extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = 'KeysUnavailableError';
  }
}

/** The platform's public keys, fetched on first use and again for an unknown key. */
export class PlatformKeys {
  readonly get: JWTVerifyGetKey;
  readonly #transport: NodeTransport;

  /** @param ca certificate authority in PEM, trusted in addition to the default ones */
  constructor(jwksUrl: string, ca: string | undefined) {
    const url = new URL(jwksUrl);
    this.#transport = new NodeTransport(url.origin, ca);
    this.get = createRemoteJWKSet(url, {
      cooldownDuration: COOLDOWN_MS,
      [customFetch]: (_url, { signal }) => this.#fetch(url, signal),
    });
  }

  close(): void {
    this.#transport.close();
  }

  async #fetch(url: URL, signal: AbortSignal): Promise<Response> {
    const fetchKeys = async () => {
      return readJson(await this.#transport.request(url.pathname + url.search, { method: 'GET', signal }));
    };
    try {
      return Response.json(await withRetries(fetchKeys, signal));
    } catch (error) {
      throw new KeysUnavailableError(error);
    }
  }
}
