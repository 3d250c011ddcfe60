import { GetTokenResponse } from '../../contracts/auth.js';
import type { Access, TokenProvider } from '../access.js';
import { ApiError } from './errors.js';
import type { Transport } from './transport.js';

const REFRESH_EARLY_MS = 60_000;
/** How long the platform may be silent about a token: whoever needs one waits for the same request. */
const SILENCE_MS = 60_000;

/** An access token and when to replace it, in milliseconds since the epoch; never is `Infinity`. */
interface Held {
  token: string;
  renewAtMs: number;
}

/** Holds an access token and gets the next one before it ends. */
export class TokenSource {
  readonly #fetch: () => Promise<Held>;
  #held: Held | null = null;
  #pending: Promise<Held> | null = null;

  /** @param agentType the token's `agent_type` claim, for a client's id and secret; the platform's default is `credential` */
  constructor(transport: Transport, credentials: Access['credentials'], agentType?: string) {
    if ('clientId' in credentials) this.#fetch = () => exchange(transport, credentials, agentType);
    else this.#fetch = givenToken(credentials.token);
  }

  /** When the token in hand should be replaced: a minute, or a fifth of its life, before its end. */
  get renewAtMs(): number {
    return this.#held?.renewAtMs ?? 0;
  }

  /** A valid token. Callers at the same time share one request. @throws ApiError | UnreachableError */
  async get(): Promise<string> {
    if (this.#held && Date.now() < this.#held.renewAtMs) return this.#held.token;
    this.#pending ??= this.#fetch().finally(() => {
      this.#pending = null;
    });
    this.#held = await this.#pending;
    return this.#held.token;
  }

  /** Forgets `token` after a 401, unless a newer one took its place. */
  invalidate(token: string): void {
    if (this.#held?.token === token) this.#held = null;
  }
}

async function exchange(
  transport: Transport,
  { clientId, clientSecret }: { clientId: string; clientSecret: string },
  agentType: string | undefined,
): Promise<Held> {
  const body = { client_id: clientId, client_secret: clientSecret, ...(agentType && { agent_type: agentType }) };
  const answer = GetTokenResponse.parse(await transport.json('/auth/get_token', { body, silenceMs: SILENCE_MS }));
  return { token: answer.token, renewAtMs: renewAt(answer.expires_in * 1000) };
}

/** A token that was given once is asked for once: when it is refused there is no other. */
function givenToken(given: string | TokenProvider): () => Promise<Held> {
  let asked = false;
  return async () => {
    if (typeof given === 'function') {
      const token = await given();
      return { token, renewAtMs: renewAt(lifetimeMs(token)) };
    }
    if (asked) throw new ApiError('the access token was refused', { status: 401, code: 'unauthorized' });
    asked = true;
    return { token: given, renewAtMs: Number.POSITIVE_INFINITY };
  };
}

function renewAt(lifeMs: number): number {
  return Date.now() + lifeMs - Math.min(REFRESH_EARLY_MS, lifeMs / 5);
}

/** What is left of a JWT's life by its `exp`; without end for one that does not say. */
function lifetimeMs(token: string): number {
  try {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { exp?: unknown };
    return typeof claims.exp === 'number' ? claims.exp * 1000 - Date.now() : Number.POSITIVE_INFINITY;
  } catch {
    return Number.POSITIVE_INFINITY; // not a JWT of ours: the platform says when it is over
  }
}
