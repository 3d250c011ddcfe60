import type { FastifyInstance } from 'fastify';
import { createCredential, listCredentials, revokeCredential, rotateCredential } from '../../auth/credentials.js';
import { isOperator, issueOperatorToken } from '../../auth/operators.js';
import { revokeUser, tokenEpoch } from '../../auth/user-tokens.js';
import type { Caller } from '../../contracts/api/auth.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { LIMITS } from '../../contracts/limits.js';
import { isLimited, limitsProblem, narrowingRefusal, tokenRefusal } from '../../contracts/permissions.js';
import type { Scope } from '../../contracts/primitives.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import type { Logins } from '../logins.js';
import { mount, pageFields } from '../mount.js';

/** Whole seconds that a token may live: as requested, but not beyond the end of its credential. */
function lifetimeSeconds(requestedSeconds: number, expiresAt: string | null): number {
  if (expiresAt === null) return requestedSeconds;
  return Math.min(requestedSeconds, Math.floor((Date.parse(expiresAt) - Date.now()) / 1_000));
}

/** @throws PlatformError forbidden: an operator of the platform would outlast its token by a credential of the tenant */
function refuseOperators({ operator }: Caller): void {
  if (operator === undefined) return;
  throw new PlatformError('forbidden', 'An operator of the platform may not create or rotate credentials of a tenant.');
}

/** Tokens, the keys that verify them, and a tenant's own credentials. */
export function authRoutes(
  app: FastifyInstance,
  deps: Pick<ApiDeps, 'db' | 'secrets' | 'tokens'> & { logins: Logins },
): void {
  const { logins } = deps;

  mount(app, OPERATIONS.getToken).answer(async (body, { request }) => {
    const credential = await logins.credentialOf(body, request.ip);
    const { user_id, session_id, agent_types: agent_types_allowed } = body;
    const limits = { user_id, session_id, agent_types_allowed };
    const hasLimits = isLimited(limits);
    const usual = hasLimits ? LIMITS.limitedTokenSecondsDefault : LIMITS.tokenLifetimeSecondsDefault;
    const expires_in = lifetimeSeconds(body.expires_in ?? usual, credential.expires_at);
    const problem = limitsProblem(body);
    if (problem !== null) throw new PlatformError('BAD_REQUEST', problem);
    if (expires_in < 1) throw new PlatformError('unauthorized', 'The credential has ended.');
    const refusal = tokenRefusal(credential, body.agent_type) ?? narrowingRefusal(credential, body);
    if (refusal !== null) throw new PlatformError('forbidden', refusal);
    if (isOperator(credential) && hasLimits)
      throw new PlatformError('forbidden', 'An operator of the platform gets no token with limits.');
    if (isOperator(credential)) return issueOperatorToken(deps, credential, { ...body, expires_in }, request.ip);
    const { tenant_id, credential_id } = credential;
    const { scopes = hasLimits ? (['read'] as Scope[]) : credential.scopes } = body;
    const user_epoch = user_id === undefined ? 0 : await tokenEpoch(deps.db, tenant_id, user_id);
    const limited = { ...limits, ...(user_epoch > 0 && { user_epoch }) };
    const claims = { tenant_id, agent_type: body.agent_type, scopes, sub: credential_id, credential_id, ...limited };
    const token = await deps.tokens.issueAccessToken(claims, expires_in);
    return { token, token_type: 'Bearer', expires_in, scopes };
  });

  mount(app, OPERATIONS.revokeUser).answer(async ({ user_id }, { author }) => {
    await revokeUser(deps.db, author, user_id);
    return { ok: true, user_id };
  });

  mount(app, OPERATIONS.jwks).answer(async (_body, { reply }) => {
    reply.header('cache-control', 'public, max-age=60');
    const { keys } = await deps.tokens.jwks();
    return { keys: keys.map((key) => ({ ...key })) };
  });

  mount(app, OPERATIONS.createCredential).answer(async (body, { author, caller }) => {
    refuseOperators(caller);
    if (body.expires_at !== undefined && Date.parse(body.expires_at) <= Date.now()) {
      throw new PlatformError('BAD_REQUEST', 'expires_at: must be in the future.');
    }
    const issued = await deps.db.tenant(author.tenant_id, (tx) => createCredential(tx, deps.secrets, author, body));
    return { ok: true, ...issued };
  });

  mount(app, OPERATIONS.getCredentials).answer(async (body, { caller: { tenant_id } }) => {
    const { rows: credentials, ...counted } = await listCredentials(deps.db, tenant_id, body);
    return { ...pageFields(body, counted), credentials };
  });

  mount(app, OPERATIONS.rotateCredential).answer(async (body, { author, caller }) => {
    refuseOperators(caller);
    const { credential_id, overlap_seconds } = body;
    const issued = await deps.db.tenant(author.tenant_id, (tx) =>
      rotateCredential(tx, deps.secrets, author, credential_id, overlap_seconds),
    );
    return { ok: true, ...issued };
  });

  mount(app, OPERATIONS.revokeCredential).answer(async ({ credential_id }, { author }) => {
    await deps.db.tenant(author.tenant_id, (tx) => revokeCredential(tx, author, credential_id));
    return { ok: true, credential_id };
  });
}
