import { hash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { decodeJwt } from 'jose';
import { z } from 'zod';
import { type Author, authorOf, recordAudit } from '../audit/record-audit.js';
import type { Caller, Credential } from '../contracts/api/auth.js';
import { NO_AGENT } from '../contracts/primitives.js';
import { queryJson } from '../db/json-rows.js';
import type { Db, Tx } from '../db/pool.js';
import { type Secrets, UnreadableValue } from '../runtime/secrets.js';
import type { TokenIssuer } from './tokens.js';

/** How long a session lasts at most. */
export const CONSOLE_SESSION_SECONDS = 43_200;
const LINK_MINUTES = 10;
/** Sessions of one credential; a further one ends the oldest. */
const SESSIONS_MAX = 100;
const PURPOSE = 'console-session';

/**
 * What a cookie holds, sealed: an access token that ends with the session, none before a person has chosen a tenant; what changes have to repeat in
 * a header; how a person signed in.
 */
const Sealed = z.object({ token: z.string().optional(), csrf: z.string(), sign_in_id: z.string().optional() });
export type SealedSession = z.infer<typeof Sealed>;

const hashOf = (link: string) => hash('sha256', link, 'buffer');

/** A link that signs in as the credential, once, within ten minutes. The database has its digest only. @returns the secret in the link */
export async function createSignInLink(db: Db, tenantId: string, credentialId: string): Promise<string> {
  const link = randomBytes(32).toString('base64url');
  await db.tenant(tenantId, async (tx) => {
    await tx.query('DELETE FROM sign_in_links WHERE tenant_id = $1 AND expires_at < now()', [tenantId]);
    await tx.query(
      `INSERT INTO sign_in_links (tenant_id, link_digest, credential_id, expires_at)
       VALUES ($1, $2, $3, now() + make_interval(mins => ${LINK_MINUTES}))`,
      [tenantId, hashOf(link), credentialId],
    );
  });
  return link;
}

/** Uses up a link. @returns the credential that it signs in as; null where it is unknown, used or too old */
export async function redeemSignInLink(db: Db, link: string): Promise<Credential | null> {
  const use = `
    WITH used AS (DELETE FROM sign_in_links WHERE link_digest = $1 RETURNING credential_id, expires_at)
    UPDATE credentials c SET last_used_at = now() FROM used u, tenants t
     WHERE c.credential_id = u.credential_id AND t.tenant_id = c.tenant_id AND u.expires_at > now() AND c.revoked_at IS NULL
       AND coalesce(c.expires_at > now(), true) AND t.deleted_at IS NULL
    RETURNING c.credential_id, c.credential_id AS client_id, c.tenant_id, c.name, c.scopes, c.agent_types, c.created_at, c.expires_at,
              c.revoked_at, c.last_used_at`;
  const [credential] = await db.system((tx) => queryJson<Credential>(tx, use, [hashOf(link)]));
  return credential ?? null;
}

const KEEP_NEWEST = `
  DELETE FROM console_sessions WHERE tenant_id = $1 AND (expires_at < now() OR console_session IN (
    SELECT console_session FROM console_sessions WHERE tenant_id = $1 AND credential_id = $2 ORDER BY created_at DESC OFFSET ${SESSIONS_MAX - 1}))`;

/** Who signs in to a tenant. */
export interface ConsoleUser
  extends Pick<Caller, 'tenant_id' | 'credential_id' | 'scopes' | 'operator' | 'approver_names'> {
  name: string;
  /** The longest that the session may last. */
  seconds: number;
  /** Of a person. */
  sign_in_id?: string;
}

/** A session that is about to begin: the claims of its token, and the value of its cookie. */
export interface OpenedSession {
  caller: Caller;
  csrf: string;
  cookie: string;
}

/** A cookie's value. */
export function sealConsoleSession(secrets: Pick<Secrets, 'encrypt'>, session: SealedSession): string {
  return secrets.encrypt(JSON.stringify(session), PURPOSE).toString('base64url');
}

export const newCsrfToken = (): string => randomBytes(16).toString('base64url');

/** Makes a session, which begins when `storeConsoleSession` has written it. */
export async function makeConsoleSession(
  { secrets, tokens }: { secrets: Pick<Secrets, 'encrypt'>; tokens: Pick<TokenIssuer, 'issueAccessToken'> },
  user: ConsoleUser,
): Promise<OpenedSession> {
  const { tenant_id, credential_id, scopes, operator, approver_names, sign_in_id } = user;
  const claims = {
    ...{ tenant_id, agent_type: NO_AGENT, scopes, sub: credential_id, credential_id, console_session: randomUUID() },
    ...(operator !== undefined && { operator }),
    ...(approver_names !== undefined && { approver_names }),
  };
  const token = await tokens.issueAccessToken(claims, Math.min(CONSOLE_SESSION_SECONDS, user.seconds));
  const { iat = 0, exp = 0 } = decodeJwt(token);
  const csrf = newCsrfToken();
  const cookie = sealConsoleSession(secrets, { token, csrf, sign_in_id });
  return { caller: { ...claims, iat, exp }, csrf, cookie };
}

/** Writes a session and its entry in the audit. @param after what the audit says of how the person signed in */
export async function storeConsoleSession(
  tx: Tx,
  { caller }: OpenedSession,
  { name, sign_in_id }: Pick<ConsoleUser, 'name' | 'sign_in_id'>,
  ip: string,
  after?: object,
): Promise<void> {
  const { tenant_id, credential_id, console_session, iat, exp } = caller;
  await tx.query(KEEP_NEWEST, [tenant_id, credential_id]);
  await tx.query(
    `INSERT INTO console_sessions (tenant_id, console_session, credential_id, sign_in_id, expires_at)
     VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5))`,
    [tenant_id, console_session, credential_id, sign_in_id ?? null, exp - iat],
  );
  const author = authorOf(caller, ip);
  const target = { ...author.principal, name };
  await recordAudit(tx, author, { action: 'console.sign_in', target, ...(after && { after }) });
}

/** Signs in as a credential. */
export async function openConsoleSession(
  deps: { db: Db; secrets: Secrets; tokens: Pick<TokenIssuer, 'issueAccessToken'> },
  credential: Credential,
  ip: string,
): Promise<OpenedSession> {
  const { expires_at } = credential;
  const left = expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at) - Date.now();
  const opened = await makeConsoleSession(deps, { ...credential, seconds: Math.floor(left / 1_000) });
  await deps.db.tenant(credential.tenant_id, (tx) => storeConsoleSession(tx, opened, credential, ip));
  return opened;
}

/** Opens a cookie. Whether its token is still valid, the authenticator says. @returns null for any other text */
export function unsealConsoleSession(secrets: Pick<Secrets, 'decrypt'>, cookie: string): SealedSession | null {
  try {
    const plain = secrets.decrypt(Buffer.from(cookie, 'base64url'), PURPOSE).toString();
    return Sealed.parse(JSON.parse(plain));
  } catch (error) {
    if (error instanceof UnreadableValue) return null;
    throw error;
  }
}

/** Whether a request that changes something carries the session's own value. */
export function isCsrfToken({ csrf }: SealedSession, given: unknown): boolean {
  if (typeof given !== 'string') return false;
  return timingSafeEqual(hash('sha256', csrf, 'buffer'), hash('sha256', given, 'buffer'));
}

/** Ends a session, or all of its credential; their tokens and streams end within 5 s. */
export async function endConsoleSessions(db: Db, author: Author, caller: Caller, everywhere: boolean): Promise<void> {
  const { tenant_id, credential_id: id, console_session = '' } = caller;
  await db.tenant(tenant_id, async (tx) => {
    const which = everywhere ? 'credential_id = $2' : 'console_session = $2';
    const end = `DELETE FROM console_sessions WHERE tenant_id = $1 AND ${which}`;
    await tx.query(end, [tenant_id, everywhere ? id : console_session]);
    const target = { type: author.principal.type, id };
    await recordAudit(tx, author, { action: 'console.sign_out', target, after: { everywhere } });
  });
}
