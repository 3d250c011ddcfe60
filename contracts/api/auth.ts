import { z } from 'zod';
import { LIMITS } from '../limits.js';
import {
  AgentType,
  AgentTypeOfAgents,
  ANY_AGENT_TYPE,
  AnyId,
  Instant,
  listFields,
  NO_AGENT,
  pageFields,
  Scope,
  Timestamp,
} from '../primitives.js';

export const GetTokenRequest = z.strictObject({
  client_id: z.string().min(1).max(200),
  client_secret: z.string().min(1).max(512),
  agent_type: AgentType.default(NO_AGENT),
  expires_in: z
    .int()
    .min(LIMITS.tokenLifetimeSecondsMin)
    .max(LIMITS.tokenLifetimeSecondsMax)
    .default(LIMITS.tokenLifetimeSecondsDefault),
});
export const GetTokenResponse = z.object({
  token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int(),
  scopes: z.array(Scope),
});

/** The public keys of the platform's tokens. */
export const Jwks = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });

/** Claims of an access token (specification section 5). `iat` and `exp` in seconds. */
export const TokenClaims = z.object({
  tenant_id: z.string(),
  agent_type: z.string(),
  scopes: z.array(Scope),
  sub: z.string(),
  iat: z.number(),
  exp: z.number(),
  credential_id: z.string(),
});
export type TokenClaims = z.infer<typeof TokenClaims>;

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
export type CredentialCreateRequest = z.infer<typeof CredentialCreateRequest>;
/** The only response that contains the secret. */
export const CredentialSecretResponse = z.object({
  ok: z.literal(true),
  credential: Credential,
  client_secret: z.string(),
});
export const CredentialsGetRequest = z.strictObject({ ...pageFields });
export const CredentialsGetResponse = z.object({ ...listFields, credentials: z.array(Credential) });
export const CredentialRotateRequest = z.strictObject({
  credential_id: AnyId,
  overlap_seconds: z
    .int()
    .min(0)
    .max(30 * 86_400)
    .default(86_400),
});
export const CredentialRevokeRequest = z.strictObject({ credential_id: AnyId });
export const CredentialRevokeResponse = z.object({ ok: z.literal(true), credential_id: z.string() });

/** The caller of a request: the claims of its verified access token. */
export type Caller = TokenClaims;
