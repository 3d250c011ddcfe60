import { readJson, type Transport } from '../transport/transport.js';
import { ApiError, UnreachableError } from './errors.js';

/** Returns a valid access token. Called again when the last token is about to expire, or was refused. */
export type TokenProvider = () => string | Promise<string>;

/** A client's id and secret, or a token or what returns one. */
export type Credentials = { clientId: string; clientSecret: string } | { token: string | TokenProvider };

const REFRESH_EARLY_MS = 60_000;
/** Time limit without any byte from the platform, for a token request. All callers wait for the same request. */
const SILENCE_MS = 60_000;

/** An access token, and when to renew it in milliseconds since the epoch; `Infinity` for never. */
interface CachedToken {
  token: string;
  renewAtMs: number;
}

/** Caches an access token and gets a new one before it expires. */
export class TokenSource {
  readonly #fetch: () => Promise<CachedToken>;
  #cached: CachedToken | null = null;
  #pending: Promise<CachedToken> | null = null;

  /** @param agentType the token's `agent_type` claim, for a client's id and secret; the platform's default is `credential` */
  constructor(transport: Transport, credentials: Credentials, agentType?: string) {
    if ('clientId' in credentials) this.#fetch = () => requestToken(transport, credentials, agentType);
    else this.#fetch = configuredToken(credentials.token);
  }

  /** When to renew the current token: a minute before it expires, or a fifth of its lifetime if that is shorter. */
  get renewAtMs(): number {
    return this.#cached?.renewAtMs ?? 0;
  }

  /** A valid token. Concurrent callers share one request. @throws ApiError | UnreachableError */
  async get(): Promise<string> {
    if (this.#cached && Date.now() < this.#cached.renewAtMs) return this.#cached.token;
    this.#pending ??= this.#fetch().finally(() => {
      this.#pending = null;
    });
    this.#cached = await this.#pending;
    return this.#cached.token;
  }

  /** Drops `token` after a 401, unless a newer one has replaced it. */
  invalidate(token: string): void {
    if (this.#cached?.token === token) this.#cached = null;
  }
}

async function requestToken(
  transport: Transport,
  { clientId, clientSecret }: { clientId: string; clientSecret: string },
  agentType: string | undefined,
): Promise<CachedToken> {
  const body = { client_id: clientId, client_secret: clientSecret, ...(agentType && { agent_type: agentType }) };
  const answer = await transport.request('/auth/get_token', { body, silenceMs: SILENCE_MS });
  const { token, expires_in: seconds } = await readJson(answer);
  if (typeof token === 'string' && typeof seconds === 'number') return { token, renewAtMs: renewAt(seconds * 1000) };
  throw new UnreachableError(answer.url, new SyntaxError('the answer has no token'));
}

/** A token from the options: a function is called for each new token; a fixed token that was refused has no replacement. */
function configuredToken(given: string | TokenProvider): () => Promise<CachedToken> {
  let used = false;
  return async () => {
    if (typeof given === 'function') {
      const token = await given();
      return { token, renewAtMs: renewAt(lifetimeMs(token)) };
    }
    if (used) throw new ApiError('the access token was refused', { status: 401, code: 'unauthorized' });
    used = true;
    return { token: given, renewAtMs: Number.POSITIVE_INFINITY };
  };
}

function renewAt(lifeMs: number): number {
  return Date.now() + lifeMs - Math.min(REFRESH_EARLY_MS, lifeMs / 5);
}

/** The remaining lifetime of a JWT by its `exp`; `Infinity` without one. */
function lifetimeMs(token: string): number {
  try {
    const payload = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const claims = JSON.parse(atob(payload)) as { exp?: unknown };
    return typeof claims.exp === 'number' ? claims.exp * 1000 - Date.now() : Number.POSITIVE_INFINITY;
  } catch {
    return Number.POSITIVE_INFINITY; // not a JWT: the platform answers 401 when it has expired
  }
}
