import { GetTokenResponse } from '../../contracts/auth.js';
import type { Transport } from './transport.js';

export interface ClientCredentials {
  clientId: string;
  clientSecret: string;
  /** The token's `agent_type` claim; the platform's default is `credential`. */
  agentType?: string;
}

const REFRESH_EARLY_MS = 60_000;

/** Holds an access token and gets the next one before it ends. */
export class TokenSource {
  readonly #transport: Transport;
  readonly #credentials: ClientCredentials;
  #token: string | null = null;
  #renewAtMs = 0;
  #pending: Promise<string> | null = null;

  constructor(transport: Transport, credentials: ClientCredentials) {
    this.#transport = transport;
    this.#credentials = credentials;
  }

  /** When the token in hand should be replaced, in milliseconds since the epoch: a minute, or a fifth of its life, before its end. */
  get renewAtMs(): number {
    return this.#renewAtMs;
  }

  /** A valid token. Callers at the same time share one request. */
  async get(): Promise<string> {
    if (this.#token !== null && Date.now() < this.#renewAtMs) return this.#token;
    this.#pending ??= this.#fetch().finally(() => {
      this.#pending = null;
    });
    return this.#pending;
  }

  /** Forgets `token` after a 401, unless a newer one took its place. */
  invalidate(token: string): void {
    if (this.#token === token) this.#token = null;
  }

  async #fetch(): Promise<string> {
    const { clientId, clientSecret, agentType } = this.#credentials;
    const body = { client_id: clientId, client_secret: clientSecret, ...(agentType && { agent_type: agentType }) };
    const answer = GetTokenResponse.parse(await this.#transport.json('/auth/get_token', { body }));
    const lifetimeMs = answer.expires_in * 1000;
    this.#renewAtMs = Date.now() + lifetimeMs - Math.min(REFRESH_EARLY_MS, lifetimeMs / 5);
    this.#token = answer.token;
    return answer.token;
  }
}
