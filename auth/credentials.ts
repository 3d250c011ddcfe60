import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Credential } from '../contracts/api/auth.js';
import type { Scope } from '../contracts/primitives.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { newId } from '../runtime/ids.js';
import type { Secrets } from '../runtime/secrets.js';
import type { CredentialStatus } from './authenticator.js';

/** A secret has 256 random bits. The database stores its HMAC; the key of the HMAC is not in the database. */
const PURPOSE = 'client-secret';

interface CredentialRow {
  credential_id: string;
  tenant_id: string;
  name: string;
  scopes: Scope[];
  agent_types: string[];
  created_at: Date;
  expires_at: Date | null;
  revoked_at: Date | null;
}
const COLUMNS = 'credential_id, tenant_id, name, scopes, agent_types, created_at, expires_at, revoked_at';

/** A credential with its secret, which is shown once and never stored. */
export interface IssuedCredential {
  credential: Credential;
  client_secret: string;
}

/** The fields of a new credential. */
export interface NewCredential {
  name: string;
  scopes: Scope[];
  agent_types?: string[];
  /** ISO 8601. */
  expires_at?: string;
}

function toCredential(row: CredentialRow): Credential {
  return {
    credential_id: row.credential_id,
    client_id: row.credential_id,
    tenant_id: row.tenant_id,
    name: row.name,
    scopes: row.scopes,
    agent_types: row.agent_types,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at?.toISOString() ?? null,
    revoked_at: row.revoked_at?.toISOString() ?? null,
  };
}

function newSecret(secrets: Secrets): { clientSecret: string; hash: Buffer } {
  const clientSecret = randomBytes(32).toString('base64url');
  return { clientSecret, hash: secrets.mac(clientSecret, PURPOSE) };
}

function found(row: CredentialRow | undefined): CredentialRow {
  if (!row) throw new PlatformError('NOT_FOUND', 'There is no such credential.');
  return row;
}

/** Creates a credential. Its id is the client id. */
export async function createCredential(
  tx: Tx,
  secrets: Secrets,
  tenantId: string,
  fields: NewCredential,
): Promise<IssuedCredential> {
  const { clientSecret, hash } = newSecret(secrets);
  const [row] = await tx.query<CredentialRow>(
    `INSERT INTO credentials (tenant_id, credential_id, name, scopes, agent_types, secret_hash, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING ${COLUMNS}`,
    [
      tenantId,
      newId('cred'),
      fields.name,
      [...new Set(fields.scopes)],
      [...new Set(fields.agent_types ?? [])],
      hash,
      fields.expires_at ?? null,
    ],
  );
  return { credential: toCredential(found(row)), client_secret: clientSecret };
}

/** A page of a tenant's credentials, newest first; `count` is the total. */
export async function listCredentials(
  tx: Tx,
  tenantId: string,
  page: { limit: number; offset: number },
): Promise<{ count: number; credentials: Credential[] }> {
  const [total] = await tx.query<{ count: number }>('SELECT count(*) FROM credentials WHERE tenant_id = $1', [
    tenantId,
  ]);
  const rows = await tx.query<CredentialRow>(
    `SELECT ${COLUMNS} FROM credentials WHERE tenant_id = $1
     ORDER BY created_at DESC, credential_id DESC LIMIT $2 OFFSET $3`,
    [tenantId, page.limit, page.offset],
  );
  return { count: total?.count ?? 0, credentials: rows.map(toCredential) };
}

/**
 * Gives a credential a new secret.
 * @param overlapSeconds how long the old secret still works, up to 30 days; 0 ends it now
 * @throws PlatformError `NOT_FOUND`; `CONFLICT` when it was revoked
 */
export async function rotateCredential(
  tx: Tx,
  secrets: Secrets,
  tenantId: string,
  credentialId: string,
  overlapSeconds: number,
): Promise<IssuedCredential> {
  const { clientSecret, hash } = newSecret(secrets);
  const [row] = await tx.query<CredentialRow>(
    `UPDATE credentials
        SET secret_hash = $3,
            previous_secret_hash = CASE WHEN $4::int > 0 THEN secret_hash END,
            previous_expires_at = now() + make_interval(secs => $4::int)
      WHERE tenant_id = $1 AND credential_id = $2 RETURNING ${COLUMNS}`,
    [tenantId, credentialId, hash, overlapSeconds],
  );
  if (found(row).revoked_at) throw new PlatformError('CONFLICT', 'The credential was revoked.');
  return { credential: toCredential(found(row)), client_secret: clientSecret };
}

/** Revokes a credential and, within 5 s, its tokens. Idempotent. */
export async function revokeCredential(tx: Tx, tenantId: string, credentialId: string): Promise<Credential> {
  const [row] = await tx.query<CredentialRow>(
    `UPDATE credentials SET revoked_at = coalesce(revoked_at, now())
      WHERE tenant_id = $1 AND credential_id = $2 RETURNING ${COLUMNS}`,
    [tenantId, credentialId],
  );
  return toCredential(found(row));
}

interface SecretRow extends CredentialRow {
  secret_hash: Buffer;
  previous_secret_hash: Buffer | null;
  previous_valid: boolean;
  usable: boolean;
}

const FIND_BY_CLIENT = `
  SELECT ${COLUMNS.replace(/(\w+)/g, 'c.$1')}, c.secret_hash, c.previous_secret_hash,
         coalesce(c.previous_expires_at > now(), false) AS previous_valid,
         c.revoked_at IS NULL AND coalesce(c.expires_at > now(), true) AND t.deleted_at IS NULL AS usable
    FROM credentials c JOIN tenants t USING (tenant_id)
   WHERE c.credential_id = $1`;

/**
 * The credential of a client with its secret; null for an unknown client, a wrong secret, and a revoked or expired credential. All cases
 * take the same steps, so that their times tell nothing.
 */
export async function verifySecret(
  db: Db,
  secrets: Secrets,
  client: { client_id: string; client_secret: string },
): Promise<Credential | null> {
  const given = secrets.mac(client.client_secret, PURPOSE);
  const [row] = await db.system((tx) => tx.query<SecretRow>(FIND_BY_CLIENT, [client.client_id]));
  const nothing = Buffer.alloc(given.length);
  const current = timingSafeEqual(given, row?.secret_hash ?? nothing);
  const previous = timingSafeEqual(given, row?.previous_secret_hash ?? nothing) && row?.previous_valid === true;
  return row?.usable && (current || previous) ? toCredential(row) : null;
}

/** The state of a credential, for the authenticator. */
export async function credentialStatus(db: Db, credentialId: string): Promise<CredentialStatus | null> {
  const [row] = await db.system((tx) =>
    tx.query<CredentialStatus & { [column: string]: unknown }>(
      `SELECT c.tenant_id, c.revoked_at IS NULL AND t.deleted_at IS NULL AS usable, c.expires_at
         FROM credentials c JOIN tenants t USING (tenant_id) WHERE c.credential_id = $1`,
      [credentialId],
    ),
  );
  return row ?? null;
}
