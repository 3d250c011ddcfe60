import * as openid from 'openid-client';
import { z } from 'zod';
import type { Config } from '../runtime/config.js';
import { PlatformError } from '../runtime/errors.js';
import type { Person } from './people.js';

/** For one request to the provider. */
const TIMEOUT_SECONDS = 10;
const NAME_MAX = 256;
/** Values of the claim that count, and that the page names. */
const ROLES_MAX = 1_000;

/** The settings of a provider. */
export interface OidcSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** The claim that roles go by. */
  claim: string;
}

/** The settings of the provider; null where there is none. */
export function oidcSettings(
  config: Pick<Config, 'OIDC_ISSUER' | 'OIDC_CLIENT_ID' | 'OIDC_CLIENT_SECRET' | 'OIDC_CLAIM_ROLES'>,
): OidcSettings | null {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = config;
  if (issuer === undefined || clientId === undefined || clientSecret === undefined) return null;
  return { issuer, clientId, clientSecret, claim: config.OIDC_CLAIM_ROLES };
}

/** What the browser that began a sign-in brings back, sealed in a cookie: the answer of the provider must fit it. */
export const PendingSignIn = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** Unix time in seconds. */
  ends_at: z.number(),
});
export type PendingSignIn = z.infer<typeof PendingSignIn>;

const Claims = z.looseObject({
  iss: z.string(),
  sub: z.string().min(1).max(255),
  name: z.string().optional().catch(undefined),
  preferred_username: z.string().optional().catch(undefined),
  email: z.string().max(254).optional().catch(undefined),
  email_verified: z.boolean().optional().catch(undefined),
});
type Claims = z.infer<typeof Claims>;

/** The values of a claim: a text, or a list of texts. */
function valuesOf(claim: unknown): string[] {
  const values = Array.isArray(claim) ? claim : [claim];
  return values.filter((value) => typeof value === 'string' && value !== '').slice(0, ROLES_MAX);
}

/** What the ID token says, and beside it what only the userinfo says. An address counts as verified by whoever says so of that very address. */
export function withUserInfo(idToken: Claims, userInfo: Claims): Claims {
  const { email = userInfo.email } = idToken;
  const saysSo = [idToken, userInfo].find((claims) => claims.email === email && claims.email_verified !== undefined);
  return { ...userInfo, ...idToken, email, email_verified: saysSo?.email_verified };
}

/** In lower case. Only one that the provider has verified: anybody may write another's address into their profile. */
function emailOf({ email = '', email_verified }: Claims): string | null {
  return email_verified === true && email.includes('@') ? email.toLowerCase() : null;
}

/** How people read who it is. Not who it is: anybody may choose their own name. */
function nameOf(claims: Claims): string {
  const { sub, name = '', preferred_username = '' } = claims;
  const account = emailOf(claims) ?? preferred_username;
  const text = name !== '' && account !== '' && name !== account ? `${name} <${account}>` : account || name || sub;
  return text.replace(/\p{C}/gu, '').slice(0, NAME_MAX) || 'unnamed';
}

/** By the way that the provider takes. The standard's default is `basic`; most say what they take. */
const clientAuthOf =
  (secret: string): openid.ClientAuth =>
  (server, ...rest) => {
    const ways = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const way = ways.includes('client_secret_basic') ? openid.ClientSecretBasic : openid.ClientSecretPost;
    way(secret)(server, ...rest);
  };

/** Failures that say nothing about the sign-in: no answer, none in time, or one that is not the protocol's. */
const AWAY = ['OAUTH_TIMEOUT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON'];
function isAway(error: unknown): boolean {
  // Of what the token endpoint may say, only this is about the code that the browser brought; all else is about the client or the provider.
  if (error instanceof openid.ResponseBodyError) return error.error !== 'invalid_grant';
  if (error instanceof openid.WWWAuthenticateChallengeError) return true;
  return error instanceof TypeError || (error instanceof openid.ClientError && AWAY.includes(error.code ?? ''));
}

/** A provider of identities by OpenID Connect, with the authorization code flow. Nothing asks it before somebody signs in. */
export class OidcProvider {
  #configuration: Promise<openid.Configuration> | null = null;

  constructor(
    private readonly settings: OidcSettings,
    private readonly redirectUri: () => string,
  ) {}

  /** How the page calls it. */
  get name(): string {
    return new URL(this.settings.issuer).host;
  }

  /** What the provider says of itself, read once; again after a failure. @throws PlatformError SERVICE_UNAVAILABLE */
  async #discovered(): Promise<openid.Configuration> {
    this.#configuration ??= this.#discover().catch((error: unknown) => {
      this.#configuration = null;
      throw this.#away(error);
    });
    return this.#configuration;
  }

  async #discover(): Promise<openid.Configuration> {
    const { issuer, clientId, clientSecret } = this.settings;
    const isPlain = issuer.startsWith('http:'); // on this machine only (runtime/config.ts)
    const found = await openid.discovery(new URL(issuer), clientId, clientSecret, clientAuthOf(clientSecret), {
      timeout: TIMEOUT_SECONDS,
      execute: [openid.enableNonRepudiationChecks, ...(isPlain ? [openid.allowInsecureRequests] : [])],
    });
    // Of Microsoft's `common` and `organizations`: the administrator of any organization could give its people the roles that count here.
    if (found.serverMetadata().issuer.includes('{tenantid}'))
      throw new Error(`OIDC_ISSUER ${issuer} stands for every organization. It must name one: its tenant id.`);
    return found;
  }

  #away(cause: unknown): PlatformError {
    return new PlatformError('SERVICE_UNAVAILABLE', `${this.name} does not answer as it should.`, { cause });
  }

  /** Where the browser goes to sign in, and what it has to bring back. @throws PlatformError SERVICE_UNAVAILABLE */
  async begin(seconds: number): Promise<{ url: URL; pending: PendingSignIn }> {
    const configuration = await this.#discovered();
    const [state, nonce, verifier] = [openid.randomState(), openid.randomNonce(), openid.randomPKCECodeVerifier()];
    const scopes = ['openid', 'profile', 'email'];
    // Some providers tell groups only where this is asked for.
    if (configuration.serverMetadata().scopes_supported?.includes('groups')) scopes.push('groups');
    const url = openid.buildAuthorizationUrl(configuration, {
      redirect_uri: this.redirectUri(),
      scope: scopes.join(' '),
      state,
      nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    });
    return { url, pending: { state, nonce, verifier, ends_at: Math.floor(Date.now() / 1_000) + seconds } };
  }

  /**
   * Who has signed in.
   * @param query of the address at which the browser came back
   * @throws PlatformError unauthorized for an answer that is not that of the provider to this browser; forbidden where the provider refused;
   * SERVICE_UNAVAILABLE
   */
  async finish(query: string, pending: PendingSignIn): Promise<Person> {
    const configuration = await this.#discovered();
    try {
      return await this.#exchange(configuration, query, pending);
    } catch (error) {
      if (isAway(error)) throw this.#away(error);
      if (error instanceof openid.AuthorizationResponseError)
        throw new PlatformError('forbidden', `${this.name} refused: ${error.error.slice(0, 64)}.`, { cause: error });
      throw new PlatformError('unauthorized', 'The answer does not fit the sign-in that this browser began.', {
        cause: error,
      });
    }
  }

  async #exchange(configuration: openid.Configuration, query: string, pending: PendingSignIn): Promise<Person> {
    const { state: expectedState, nonce: expectedNonce, verifier: pkceCodeVerifier } = pending;
    const checks = { expectedState, expectedNonce, pkceCodeVerifier, idTokenExpected: true };
    // The address that was registered, whatever the request says of itself.
    const tokens = await openid.authorizationCodeGrant(
      configuration,
      new URL(`${this.redirectUri()}?${query}`),
      checks,
    );
    const idToken = Claims.parse(tokens.claims());
    const { email: address, email_verified } = idToken;
    const isWhole = this.settings.claim in idToken && address !== undefined && email_verified !== undefined;
    const claims = isWhole ? idToken : await this.#withUserInfo(configuration, tokens, idToken);
    const { iss: issuer, sub: subject } = claims;
    const email = emailOf(claims);
    const roles = valuesOf(this.settings.claim === 'email' ? email : claims[this.settings.claim]);
    return { issuer, subject, name: nameOf(claims), email, roles };
  }

  /** Providers may keep claims out of the ID token; those that are in it count. */
  async #withUserInfo(
    configuration: openid.Configuration,
    { access_token }: openid.TokenEndpointResponse,
    idToken: Claims,
  ): Promise<Claims> {
    if (configuration.serverMetadata().userinfo_endpoint === undefined) return idToken;
    const userInfo = Claims.parse({
      ...(await openid.fetchUserInfo(configuration, access_token, idToken.sub)),
      iss: idToken.iss,
    });
    return withUserInfo(idToken, userInfo);
  }
}
