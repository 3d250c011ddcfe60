import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { ClientCredentials } from '../../contracts/api/dispatch-auth.js';
import { type Outbound, OutboundError, type OutboundResponse } from '../../http/outbound.js';
import { jsonOf } from './answer.js';
import { clipped } from './refusal.js';

const TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX = 64 * 1024;
/** Pauses before further attempts while the token server cannot be reached: nothing has been sent to the agent yet. */
const PAUSES_MS: readonly number[] = [500, 1_000, 2_000, 4_000, 8_000];
/** Assumed lifetime of a token whose server names none. */
const LIFETIME_SECONDS = 300;
/** A token is replaced this long before it expires, or a tenth of its lifetime before if that is less. */
const MARGIN_MS = 60_000;
const CLIENTS_MAX = 1_000;
const REASON_CHARS = 300;

const TokenAnswer = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,16384}$/),
  token_type: z.string().regex(/^bearer$/i),
  /** Some servers write it as a text. */
  expires_in: z
    .union([
      z.number().min(0),
      z
        .string()
        .regex(/^\d{1,15}$/)
        .transform(Number),
    ])
    .optional()
    .catch(undefined),
});

/** The errors of a failed request for a token (RFC 6749, section 5.2). */
const TokenRefusal = z.object({ error: z.string(), error_description: z.string().optional().catch(undefined) });

/** No credential could be had for an agent, so nothing was sent to it. */
export class CredentialError extends Error {
  /** @param code TARGET_UNAVAILABLE if a later attempt may succeed, else HANDLER_ERROR */
  constructor(
    readonly code: 'TARGET_UNAVAILABLE' | 'HANDLER_ERROR',
    message: string,
  ) {
    super(message);
    this.name = 'CredentialError';
  }
}

interface Grant {
  token: string;
  /** On `performance.now()`. */
  untilMs: number;
}

/** The client's name and secret as a header (RFC 6749, section 2.3.1). */
function basic({ client_id, client_secret }: ClientCredentials): string {
  const encoded = [client_id, client_secret].map((text) => new URLSearchParams({ '': text }).toString().slice(1));
  return `Basic ${Buffer.from(encoded.join(':')).toString('base64')}`;
}

function refusalOf({ status, body }: OutboundResponse, { client_secret }: ClientCredentials): CredentialError {
  if (status >= 500 || status === 429)
    return new CredentialError('TARGET_UNAVAILABLE', `The agent's token server answered HTTP ${status}.`);
  const why = TokenRefusal.safeParse(jsonOf(body.toString())).data;
  const said = why ? [why.error, why.error_description].filter((text) => text !== undefined).join(': ') : '';
  const shown = clipped(said.replaceAll(client_secret, '…'), REASON_CHARS);
  const what = `The agent's token server refused the platform's client (HTTP ${status})`;
  return new CredentialError('HANDLER_ERROR', shown === '' ? `${what}.` : `${what}: ${shown}`);
}

function failureOf(error: OutboundError): CredentialError {
  const isLasting = error.code === 'BAD_URL' || error.code === 'FORBIDDEN_ADDRESS' || error.code === 'REDIRECT';
  const what = `No token could be had from the agent's token server: ${error.message}.`;
  return new CredentialError(isLasting ? 'HANDLER_ERROR' : 'TARGET_UNAVAILABLE', what);
}

function grantOf(answer: OutboundResponse, nowMs: number): Grant {
  const parsed = TokenAnswer.safeParse(jsonOf(answer.body.toString())).data;
  if (!parsed)
    throw new CredentialError('HANDLER_ERROR', "The agent's token server answered without a bearer token to be sent.");
  const lifetimeMs = (parsed.expires_in ?? LIFETIME_SECONDS) * 1_000;
  return { token: parsed.access_token, untilMs: nowMs + lifetimeMs - Math.min(MARGIN_MS, lifetimeMs / 10) };
}

export interface AccessTokensOptions {
  outbound: Pick<Outbound, 'request'>;
  pausesMs?: readonly number[];
}

/** The access tokens of this process, by client: each is fetched once and used until shortly before its end. */
export class AccessTokens {
  readonly #options: AccessTokensOptions;
  /** By digest of tenant and client, so that no client secret is kept. */
  readonly #grants = new LRUCache<string, Promise<Grant>>({ max: CLIENTS_MAX });

  constructor(options: AccessTokensOptions) {
    this.#options = options;
  }

  /**
   * A token of the client.
   * @param refused a token that the agent has refused: another one is fetched in its place
   * @throws CredentialError
   */
  async get(tenantId: string, client: ClientCredentials, refused?: string): Promise<string> {
    const key = hash('sha256', JSON.stringify([tenantId, client]), 'base64');
    for (;;) {
      const known = this.#grants.get(key) ?? this.#fetched(key, client);
      const { token, untilMs } = await known;
      if (token !== refused && performance.now() < untilMs) return token;
      if (this.#grants.get(key) !== known) continue; // another caller has begun to fetch one
      const fresh = await this.#fetched(key, client);
      return fresh.token; // even if it equals `refused`: the agent decides
    }
  }

  #fetched(key: string, client: ClientCredentials): Promise<Grant> {
    const grant = this.#fetch(client);
    this.#grants.set(key, grant);
    grant.catch(() => {
      if (this.#grants.peek(key) === grant) this.#grants.delete(key);
    });
    return grant;
  }

  async #fetch(client: ClientCredentials): Promise<Grant> {
    const { pausesMs = PAUSES_MS } = this.#options;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#ask(client);
      } catch (error) {
        const pauseMs = pausesMs[attempt];
        const mayPass = error instanceof CredentialError && error.code === 'TARGET_UNAVAILABLE';
        if (!mayPass || pauseMs === undefined) throw error;
        await sleep(pauseMs, undefined, { ref: false });
      }
    }
  }

  async #ask(client: ClientCredentials): Promise<Grant> {
    const { scope } = client;
    const nowMs = performance.now();
    try {
      const answer = await this.#options.outbound.request(client.token_url, {
        method: 'POST',
        headers: {
          authorization: basic(client),
          'content-type': 'application/x-www-form-urlencoded',
          accept: 'application/json',
        },
        body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope && { scope }) }).toString(),
        timeoutMs: TIMEOUT_MS,
        maxResponseBytes: ANSWER_BYTES_MAX,
      });
      if (answer.status !== 200) throw refusalOf(answer, client);
      return grantOf(answer, nowMs);
    } catch (error) {
      throw error instanceof OutboundError ? failureOf(error) : error;
    }
  }
}
