import { createHash, randomUUID } from 'node:crypto';
import type { OidcRole } from '../contracts/oidc-roles.js';
import { OPERATOR_PREFIX, PERSON_PREFIX, type Scope } from '../contracts/primitives.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { Secrets } from '../runtime/secrets.js';
import {
  CONSOLE_SESSION_SECONDS,
  type ConsoleUser,
  makeConsoleSession,
  type OpenedSession,
  storeConsoleSession,
} from './console-sessions.js';
import { TENANT_TOKEN_SECONDS } from './operators.js';
import { requireTenant } from './tenants.js';
import type { TokenIssuer } from './tokens.js';

/** Sign-ins of one person that are kept; a further one ends the oldest. */
const SIGN_INS_MAX = 100;
/** Tenants that one list shows. */
const TENANTS_SHOWN_MAX = 100;

/** A person, as a provider of identities vouches for them. */
export interface Person {
  /** The provider. */
  issuer: string;
  /** The person's id there. */
  subject: string;
  /** To be read by people. */
  name: string;
  /** In lower case; null unless the provider has verified it. */
  email: string | null;
  /** Of the claim that roles go by. */
  roles: string[];
}

/** What a person may do in a tenant. */
export interface Grant {
  tenant_id: string;
  scopes: Scope[];
  approvers: string[];
}

/** What a person may do. */
export interface Rights {
  is_operator: boolean;
  grants: Grant[];
}

/** What the roles of a person give. */
export function rightsOf(roles: readonly OidcRole[], { roles: held, email }: Pick<Person, 'roles' | 'email'>): Rights {
  const given = roles.filter(({ role }) => held.includes(role));
  const grants = new Map<string, Grant>();
  for (const { tenant, scopes, approvers } of given) {
    if (tenant === undefined) continue;
    const before = grants.get(tenant);
    grants.set(tenant, {
      tenant_id: tenant,
      scopes: [...new Set([...(before?.scopes ?? []), ...scopes])],
      approvers: [...new Set([...(before?.approvers ?? (email === null ? [] : [email])), ...approvers])],
    });
  }
  return { is_operator: given.some(({ operator }) => operator === true), grants: [...grants.values()] };
}

/** A person who has signed in, with the rights that they had then. */
export interface SignIn extends Rights, Pick<Person, 'issuer' | 'subject' | 'name'> {
  sign_in_id: string;
  created_at: Date;
  expires_at: Date;
}

const TIDY = `
  DELETE FROM sign_ins WHERE expires_at < now() OR sign_in_id IN (
    SELECT sign_in_id FROM sign_ins WHERE issuer = $1 AND subject = $2 ORDER BY created_at DESC OFFSET ${SIGN_INS_MAX - 1})`;

/** Keeps that a person has signed in, for as long as a session lasts. */
export async function recordSignIn(db: Db, person: Person, { is_operator, grants }: Rights): Promise<SignIn> {
  const { issuer, subject, name } = person;
  return db.system(async (tx) => {
    await tx.query(TIDY, [issuer, subject]);
    const [row] = await tx.query<SignIn>(
      `INSERT INTO sign_ins (sign_in_id, issuer, subject, name, is_operator, grants, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => ${CONSOLE_SESSION_SECONDS})) RETURNING *`,
      [randomUUID(), issuer, subject, name, is_operator, JSON.stringify(grants)],
    );
    if (!row) throw new Error('the sign-in was not written');
    return row;
  });
}

/** The sign-in, unless it has ended. */
export async function findSignIn(db: Db, signInId: string): Promise<SignIn | null> {
  const find = 'SELECT * FROM sign_ins WHERE sign_in_id = $1 AND expires_at > now()';
  const [row] = await db.system((tx) => tx.query<SignIn>(find, [signInId]));
  return row ?? null;
}

/** Ends a sign-in with its sessions in all tenants, or all of the same person. */
export async function endSignIn(db: Db, signInId: string, everywhere: boolean): Promise<void> {
  const end = `
    DELETE FROM sign_ins s USING sign_ins mine
     WHERE mine.sign_in_id = $1 AND (s.sign_in_id = $1 OR $2 AND s.issuer = mine.issuer AND s.subject = mine.subject)`;
  await db.system((tx) => tx.query(end, [signInId, everywhere]));
}

const NOTE_ROLES = `
  INSERT INTO platform_facts AS f (name, value) VALUES ('oidc_roles', $1)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE f.value <> excluded.value RETURNING name`;

/** At the start: once the roles have changed, nobody keeps the rights of before. People sign in again. */
export async function endEarlierSignIns(db: Db, roles: readonly OidcRole[]): Promise<void> {
  const digest = createHash('sha256').update(JSON.stringify(roles)).digest('hex');
  await db.system(async (tx) => {
    const changed = await tx.query(NOTE_ROLES, [digest]);
    await tx.query('DELETE FROM sign_ins WHERE $1 OR expires_at < now()', [changed.length > 0]);
  });
}

/** A tenant that a person may choose. */
export interface Choice {
  tenant_id: string;
  name: string;
  /** As an operator of the platform, without rights of their own in it. */
  as_operator: boolean;
}

const CHOICES = `
  SELECT tenant_id, name, NOT tenant_id = ANY ($1) AS as_operator FROM tenants
   WHERE deleted_at IS NULL AND (tenant_id = ANY ($1) OR $2) AND ($3 = tenant_id OR strpos(lower(name), lower($3)) > 0)
   ORDER BY as_operator, lower(name), tenant_id LIMIT ${TENANTS_SHOWN_MAX}`;

/** The tenants that a person may choose, their own first. @param search in their names, or the id of one */
export function choicesOf(db: Db, { grants, is_operator }: Rights, search = ''): Promise<Choice[]> {
  const own = grants.map(({ tenant_id }) => tenant_id);
  return db.system((tx) => tx.query<Choice>(CHOICES, [own, is_operator, search]));
}

/** The id of somebody, of the provider that vouches for them, in one tenant or as an operator. */
function idOf(prefix: string, { issuer, subject }: SignIn, tenantId: string | null): string {
  const digest = createHash('sha256').update(JSON.stringify([issuer, subject, tenantId]));
  return `${prefix}${digest.digest('hex').slice(0, 40)}`;
}

/** @throws PlatformError NOT_FOUND for a tenant that is not theirs */
function userOf(signIn: SignIn, tenantId: string): ConsoleUser {
  const { sign_in_id, name, is_operator, grants, expires_at } = signIn;
  const seconds = Math.floor((expires_at.getTime() - Date.now()) / 1_000);
  const grant = grants.find(({ tenant_id }) => tenant_id === tenantId);
  if (grant) {
    const credential_id = idOf(PERSON_PREFIX, signIn, tenantId);
    const { scopes, approvers: approver_names } = grant;
    return { tenant_id: tenantId, credential_id, name, scopes, approver_names, seconds, sign_in_id };
  }
  if (!is_operator) throw new PlatformError('NOT_FOUND', `There is no tenant ${tenantId}.`);
  const operator = idOf(OPERATOR_PREFIX, signIn, null);
  const limits = { scopes: ['read'] satisfies Scope[], seconds: Math.min(TENANT_TOKEN_SECONDS, seconds) };
  return { tenant_id: tenantId, credential_id: operator, operator, name, ...limits, sign_in_id };
}

/** A credential without a secret; one that was revoked comes back only by a sign-in after that. */
const KNOW = `
  INSERT INTO credentials AS c (tenant_id, credential_id, name, scopes, updated_by, last_used_at) VALUES ($1, $2, $3, $4, $2, now())
  ON CONFLICT (credential_id) DO UPDATE SET name = excluded.name, scopes = excluded.scopes, revoked_at = NULL, updated_by = $2, last_used_at = now()
   WHERE c.revoked_at IS NULL OR c.revoked_at < $5 RETURNING credential_id`;

/** @throws PlatformError unauthorized for somebody who was revoked since they signed in */
async function know(
  tx: Tx,
  { operator, tenant_id, credential_id, name, scopes }: ConsoleUser,
  since: Date,
): Promise<void> {
  const [tenantId, held] = operator === undefined ? [tenant_id, scopes] : [null, []];
  const known = await tx.query(KNOW, [tenantId, credential_id, name, held, since]);
  if (known.length === 0) throw new PlatformError('unauthorized', 'Your sessions were ended. Sign in again.');
}

/**
 * A session of a person in a tenant, with the rights that they had when they signed in; of an operator, for an hour and to read.
 * @throws PlatformError NOT_FOUND for a tenant that is deleted, or not theirs; unauthorized
 */
export async function openPersonSession(
  { db, ...deps }: { db: Db; secrets: Secrets; tokens: Pick<TokenIssuer, 'issueAccessToken'> },
  signIn: SignIn,
  tenantId: string,
  ip: string,
): Promise<OpenedSession> {
  const user = userOf(signIn, tenantId);
  const opened = await makeConsoleSession(deps, user);
  const { issuer, subject, sign_in_id } = signIn;
  const { scopes, approver_names } = user;
  await db.system(async (tx) => {
    await requireTenant(tx, tenantId);
    await know(tx, user, signIn.created_at);
    await tx.query('DELETE FROM console_sessions WHERE sign_in_id = $1', [sign_in_id]); // one tenant at a time
    await storeConsoleSession(tx, opened, user, ip, { issuer, subject, scopes, approver_names });
  });
  return opened;
}
