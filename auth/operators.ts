import { recordAudit } from '../audit/record-audit.js';
import type { Credential } from '../contracts/api/auth.js';
import { isOperatorId } from '../contracts/permissions.js';
import { NO_AGENT, type Scope } from '../contracts/primitives.js';
import { queryJson } from '../db/json-rows.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { newId } from '../runtime/ids.js';
import type { Secrets } from '../runtime/secrets.js';
import { newSecret } from './credentials.js';
import { type Actor, requireTenant } from './tenants.js';
import type { TokenIssuer } from './tokens.js';

/** The longest life of an operator's token for a tenant. */
export const TENANT_TOKEN_SECONDS = 3_600;

/** An operator of the platform: a credential without a tenant. */
export interface Operator {
  operator_id: string;
  name: string;
  created_at: string;
  revoked_at: string | null;
}

const COLUMNS = 'credential_id AS operator_id, name, created_at, revoked_at';

/** Creates an operator. Its id is the client id; the secret is shown once. */
export async function createOperator(tx: Tx, secrets: Secrets, actor: Actor, name: string) {
  const { clientSecret, hash, keyId } = await newSecret(tx, secrets);
  const operator_id = newId('op');
  await tx.query(
    `INSERT INTO credentials (credential_id, name, scopes, secret_hash, secret_key_id, updated_by) VALUES ($1, $2, '{}', $3, $4, $5)`,
    [operator_id, name, hash, keyId, actor.principal.id],
  );
  return { operator_id, name, client_id: operator_id, client_secret: clientSecret };
}

/** All operators, newest first, revoked ones included. */
export function listOperators(db: Db): Promise<Operator[]> {
  const select = `SELECT ${COLUMNS} FROM credentials WHERE tenant_id IS NULL ORDER BY credential_id DESC`;
  return db.system((tx) => queryJson<Operator>(tx, select));
}

/** Revokes an operator and, within 5 s, its tokens. @throws PlatformError NOT_FOUND */
export async function revokeOperator(tx: Tx, actor: Actor, operatorId: string): Promise<Operator> {
  const update = 'UPDATE credentials SET revoked_at = coalesce(revoked_at, now()), updated_by = $2';
  const revoke = `${update} WHERE tenant_id IS NULL AND credential_id = $1 RETURNING ${COLUMNS}`;
  const [operator] = await queryJson<Operator>(tx, revoke, [operatorId, actor.principal.id]);
  if (!operator) throw new PlatformError('NOT_FOUND', 'There is no such operator.');
  await tx.query('DELETE FROM console_sessions WHERE credential_id = $1', [operatorId]);
  return operator;
}

/** A token that an operator asks for. */
interface OperatorToken {
  tenant_id?: string | undefined;
  scopes?: Scope[] | undefined;
  expires_in: number;
}

/** Whether a credential is that of an operator. */
export function isOperator({ credential_id }: Pick<Credential, 'credential_id'>): boolean {
  return isOperatorId(credential_id);
}

/**
 * Issues an operator's own token, or one for a tenant, which the tenant's audit records before the operator has it.
 * @throws PlatformError NOT_FOUND for an unknown or deleted tenant
 */
export async function issueOperatorToken(
  { db, tokens }: { db: Db; tokens: Pick<TokenIssuer, 'issueAccessToken'> },
  { credential_id }: Pick<Credential, 'credential_id'>,
  request: OperatorToken,
  ip: string,
): Promise<{ token: string; token_type: 'Bearer'; expires_in: number; scopes: Scope[] }> {
  const { tenant_id } = request;
  const claims = { agent_type: NO_AGENT, sub: credential_id, credential_id, operator: credential_id };
  if (tenant_id === undefined) {
    const token = await tokens.issueAccessToken({ ...claims, tenant_id: '', scopes: [] }, request.expires_in);
    return { token, token_type: 'Bearer', expires_in: request.expires_in, scopes: [] };
  }
  const scopes: Scope[] = request.scopes ?? ['read'];
  const expires_in = Math.min(request.expires_in, TENANT_TOKEN_SECONDS);
  await db.system(async (tx) => {
    await requireTenant(tx, tenant_id);
    const principal = { type: 'operator', id: credential_id } as const;
    const target = { type: 'operator', id: credential_id };
    const after = { scopes, expires_in };
    await recordAudit(tx, { tenant_id, principal, ip }, { action: 'operator.token', target, after });
  });
  const token = await tokens.issueAccessToken({ ...claims, tenant_id, scopes }, expires_in);
  return { token, token_type: 'Bearer', expires_in, scopes };
}
