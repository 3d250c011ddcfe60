import { z } from 'zod';
import { LIMITS } from '../limits.js';
import {
  AgentType,
  AgentTypeOfAgents,
  ANY_AGENT_TYPE,
  AnyId,
  Instant,
  JsonObject,
  NO_AGENT,
  ok,
  okPage,
  pageFields,
  Scope,
  Timestamp,
  UserId,
} from '../primitives.js';
import { CONFLICT, EXTENSION, FULL, get, PUBLIC, post } from './operation.js';

export const GetTokenResponse = z.object({
  token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int(),
  scopes: z.array(Scope),
});

export const GetTokenRequest = z.strictObject({
  client_id: z.string().min(1).max(200),
  client_secret: z.string().min(1).max(512),
  agent_type: AgentType.default(NO_AGENT),
  /** For an operator of the platform: a token for this tenant, instead of the operator's own. */
  tenant_id: AnyId.optional(),
  /** Fewer than the credential has; for an operator, and with a limit, `["read"]` by default. */
  scopes: z.array(Scope).min(1).optional(),
  /** By default a day; an hour with a limit, and a day at most. */
  expires_in: z.int().min(LIMITS.tokenLifetimeSecondsMin).max(LIMITS.tokenLifetimeSecondsMax).optional(),
  /** Limits the token to an end user: it sends as that user, and reaches what is that user's. */
  user_id: UserId.optional(),
  /** Limits the token to a session. */
  session_id: AnyId.optional(),
  /** Limits the token to agents of these types. */
  agent_types: z.array(AgentTypeOfAgents).min(1).max(100).optional(),
});
export type GetTokenRequest = z.infer<typeof GetTokenRequest>;

export const AUTH_OPERATIONS = {
  getToken: post('/auth/get_token', PUBLIC, 'Exchange a client id and secret for an access token', {
    request: GetTokenRequest,
    response: GetTokenResponse,
  }),
  jwks: get('/.well-known/jwks.json', PUBLIC, 'The public keys that verify tokens of this platform', {
    response: z.object({ keys: z.array(JsonObject) }),
    ...EXTENSION,
  }),
  revokeUser: post('/auth/revoke_user', FULL, 'End all tokens that are limited to a user', {
    request: z.strictObject({ user_id: UserId }),
    response: ok({ user_id: z.string() }),
    ...EXTENSION,
  }),
};

/** Claims of an access token. `iat` and `exp` in seconds. */
export const TokenClaims = z.object({
  tenant_id: z.string(),
  agent_type: z.string(),
  scopes: z.array(Scope),
  sub: z.string(),
  iat: z.number(),
  exp: z.number(),
  credential_id: z.string(),
  /** The operator of the platform whose token it is: its own, with '' as `tenant_id`, or one for a tenant. */
  operator: z.string().optional(),
  /** What the token is limited to (contracts/permissions.ts). */
  user_id: z.string().optional(),
  session_id: z.string().optional(),
  agent_types_allowed: z.array(z.string()).optional(),
  /** How often the user's tokens had been revoked. */
  user_epoch: z.int().optional(),
  /** Of a person's session: the names by which policies name them as an approver. */
  approver_names: z.array(z.string()).optional(),
  /** The session of the console whose token it is: the token ends with it. */
  console_session: z.string().optional(),
});
export type TokenClaims = z.infer<typeof TokenClaims>;
/** The caller of a request: the claims of its verified access token. */
export type Caller = TokenClaims;

export const Credential = z.object({
  credential_id: z.string(),
  client_id: z.string(),
  tenant_id: z.string(),
  name: z.string(),
  scopes: z.array(Scope),
  agent_types: z.array(z.string()),
  created_at: Timestamp,
  expires_at: Timestamp.nullable(),
  revoked_at: Timestamp.nullable(),
  /** When it last took a token or signed in, to the minute. */
  last_used_at: Timestamp.nullable(),
});
export type Credential = z.infer<typeof Credential>;

export const CredentialCreateRequest = z.strictObject({
  name: z.string().min(1).max(256),
  scopes: z.array(Scope).min(1),
  /** The `agent_type` claims that its tokens may have; `*` for any, except `credential`. */
  agent_types: z
    .array(z.union([z.literal(ANY_AGENT_TYPE), AgentTypeOfAgents]))
    .max(100)
    .optional(),
  expires_at: Instant.optional(),
});
/** The only response that contains the secret. */
export const CredentialSecretResponse = ok({ credential: Credential, client_secret: z.string() });
export const CredentialsGetResponse = okPage({ credentials: z.array(Credential) });
export const CredentialRotateRequest = z.strictObject({
  credential_id: AnyId,
  overlap_seconds: z
    .int()
    .min(0)
    .max(30 * 86_400)
    .default(86_400),
});

export const CREDENTIAL_OPERATIONS = {
  createCredential: post('/credentials/create', FULL, 'Create a credential; its secret is shown once', {
    request: CredentialCreateRequest,
    response: CredentialSecretResponse,
    ...EXTENSION,
  }),
  getCredentials: post('/credentials/get', FULL, "List the tenant's credentials", {
    request: z.strictObject(pageFields),
    response: CredentialsGetResponse,
    ...EXTENSION,
  }),
  rotateCredential: post('/credentials/rotate', FULL, 'Give a credential a new secret', {
    request: CredentialRotateRequest,
    response: CredentialSecretResponse,
    ...EXTENSION,
    ...CONFLICT,
  }),
  revokeCredential: post('/credentials/revoke', FULL, 'Revoke a credential and its tokens', {
    request: z.strictObject({ credential_id: AnyId }),
    response: ok({ credential_id: z.string() }),
    ...EXTENSION,
  }),
};
