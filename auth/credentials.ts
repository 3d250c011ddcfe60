import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { z } from 'zod';
import { type Author, recordAudit } from '../audit/record-audit.js';
import type { Credential, CredentialCreateRequest } from '../contracts/api/auth.js';
import { queryJson } from '../db/json-rows.js';
import { type KeyList, type Page, type PageRequest, readPage } from '../db/pages/page.js';
import type { Db, Tx } from '../db/pool.js';
import { holdSecretKey } from '../db/secret-key.js';
import { PlatformError } from '../runtime/errors.js';
import { newId } from '../runtime/ids.js';
import type { Secrets } from '../runtime/secrets.js';
import type { CredentialStatus, TokenOf } from './authenticator.js';

/** A secret has 256 random bits. The database stores its HMAC; the key of the HMAC is not in the database. */
const PURPOSE = 'client-secret';

const COLUMNS = `credential_id, credential_id AS client_id, tenant_id, name, scopes, agent_types, created_at, expires_at,
  revoked_at, last_used_at`;

/** What a credential is created with. */
export type NewCredential = z.input<typeof CredentialCreateRequest>;

/** A credential with its secret, which is shown once and never stored. */
export interface IssuedCredential {
  credential: Credential;
  client_secret: string;
}

/** A new secret with its hash. */
export async function newSecret(
  tx: Tx,
  secrets: Secrets,
): Promise<{ clientSecret: string; hash: Buffer; keyId: string }> {
  await holdSecretKey(tx, secrets);
  const clientSecret = randomBytes(32).toString('base64url');
  return { clientSecret, hash: secrets.mac(clientSecret, PURPOSE), keyId: secrets.check() };
}

/** Runs a statement that changes a credential. @throws PlatformError NOT_FOUND when it changes none */
async function change(tx: Tx, statement: string, values: unknown[]): Promise<Credential> {
  const [credential] = await queryJson<Credential>(tx, `${statement} RETURNING ${COLUMNS}`, values);
  if (!credential) throw new PlatformError('NOT_FOUND', 'There is no such credential.');
  return credential;
}

function targetOf({ credential_id: id, name }: Credential) {
  return { type: 'credential', id, name };
}

/** Creates a credential. Its id is the client id. */
export async function createCredential(
  tx: Tx,
  secrets: Secrets,
  author: Author,
  { name, scopes, agent_types, expires_at }: NewCredential,
): Promise<IssuedCredential> {
  const { clientSecret, hash, keyId } = await newSecret(tx, secrets);
  const lists = [[...new Set(scopes)], [...new Set(agent_types ?? [])]];
  const credential = await change(
    tx,
    `INSERT INTO credentials (tenant_id, credential_id, name, scopes, agent_types, secret_hash, secret_key_id, expires_at, updated_by)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [author.tenant_id, newId('cred'), name, ...lists, hash, keyId, expires_at ?? null, author.principal.id],
  );
  await recordAudit(tx, author, { action: 'credential.create', target: targetOf(credential), after: credential });
  return { credential, client_secret: clientSecret };
}

const NEWEST_FIRST = 'created_at DESC, credential_id DESC';

/** A page of a tenant's credentials, newest first. */
export function listCredentials(db: Db, tenantId: string, page: PageRequest): Promise<Page<Credential>> {
  const from = 'credentials WHERE tenant_id = $1';
  const select = `SELECT ${COLUMNS} FROM ${from} AND credential_id = ANY ($2) ORDER BY ${NEWEST_FIRST}`;
  const list: KeyList = { key: 'credential_id', from, orderBy: NEWEST_FIRST, values: [tenantId] };
  return readPage(db, list, page, (tx, ids) => queryJson<Credential>(tx, select, [tenantId, ids]));
}

/**
 * Gives a credential of the author's tenant a new secret.
 * @param overlapSeconds how long the old secret still works, up to 30 days; 0 ends it now
 * @throws PlatformError `NOT_FOUND`, also for a person, who has no secret; `CONFLICT` when it was revoked
 */
export async function rotateCredential(
  tx: Tx,
  secrets: Secrets,
  author: Author,
  credentialId: string,
  overlapSeconds: number,
): Promise<IssuedCredential> {
  const { clientSecret, hash, keyId } = await newSecret(tx, secrets);
  const credential = await change(
    tx,
    `UPDATE credentials
        SET secret_hash = $3, secret_key_id = $5, previous_secret_key_id = secret_key_id,
            previous_secret_hash = CASE WHEN $4::int > 0 THEN secret_hash END,
            previous_expires_at = now() + make_interval(secs => $4::int), updated_by = $6
      WHERE tenant_id = $1 AND credential_id = $2 AND secret_hash IS NOT NULL`,
    [author.tenant_id, credentialId, hash, overlapSeconds, keyId, author.principal.id],
  );
  if (credential.revoked_at) throw new PlatformError('CONFLICT', 'The credential was revoked.');
  const after = { ...credential, overlap_seconds: overlapSeconds };
  await recordAudit(tx, author, {
    action: 'credential.rotate',
    target: targetOf(credential),
    before: credential,
    after,
  });
  return { credential, client_secret: clientSecret };
}

/**
 * Revokes a credential of the author's tenant and, within 5 s, its tokens. Idempotent. That of a person comes back with a new sign-in, as long as the
 * provider lets them, but its sessions do not.
 */
export async function revokeCredential(tx: Tx, author: Author, credentialId: string): Promise<Credential> {
  const ids = [author.tenant_id, credentialId];
  const find = `SELECT ${COLUMNS} FROM credentials WHERE tenant_id = $1 AND credential_id = $2 FOR UPDATE`;
  const [before] = await queryJson<Credential>(tx, find, ids);
  if (before?.revoked_at) return before;
  const revoke =
    'UPDATE credentials SET revoked_at = now(), updated_by = $3 WHERE tenant_id = $1 AND credential_id = $2';
  const after = await change(tx, revoke, [...ids, author.principal.id]);
  await tx.query('DELETE FROM console_sessions WHERE tenant_id = $1 AND credential_id = $2', ids);
  await recordAudit(tx, author, {
    action: 'credential.revoke',
    target: targetOf(after),
    before: before ?? null,
    after,
  });
  return after;
}

interface StoredCredential extends Credential {
  /** Null for people. */
  secret_hash: Buffer | null;
  /** Null unless it is still valid. */
  previous_hash: Buffer | null;
  usable: boolean;
  /** Its last use was not noted within a minute. */
  use_is_old: boolean;
}

const FIND_BY_CLIENT = `
  SELECT ${COLUMNS}, secret_hash, CASE WHEN previous_expires_at > now() THEN previous_secret_hash END AS previous_hash,
         coalesce(last_used_at < now() - interval '1 minute', true) AS use_is_old,
         secret_hash IS NOT NULL AND revoked_at IS NULL AND coalesce(expires_at > now(), true)
           AND (c.tenant_id IS NULL OR EXISTS (SELECT 1 FROM tenants t WHERE t.tenant_id = c.tenant_id AND t.deleted_at IS NULL)) AS usable
    FROM credentials c WHERE credential_id = $1`;

/** Notes that a credential is used. A database that takes no writes locks nobody out: then the use is not noted. */
async function noteUse(db: Db, clientId: string): Promise<void> {
  const note = 'UPDATE credentials SET last_used_at = now() WHERE credential_id = $1';
  try {
    await db.system((tx) => tx.query(note, [clientId]));
  } catch (error) {
    if (!(error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE')) throw error;
  }
}

/**
 * The credential of a client with its secret; null for an unknown client, a wrong secret, and a revoked or expired credential. All cases
 * take the same steps, so that their times tell nothing.
 */
export async function verifySecret(
  db: Db,
  secrets: Secrets,
  client: { client_id: string; client_secret: string },
): Promise<Credential | null> {
  const macs = secrets.macs(client.client_secret, PURPOSE);
  const [stored] = await db.system((tx) => queryJson<StoredCredential>(tx, FIND_BY_CLIENT, [client.client_id]));
  const nothing = Buffer.alloc(32);
  const { secret_hash = null, previous_hash = null, usable = false, use_is_old = false, ...credential } = stored ?? {};
  const hashes = [secret_hash ?? nothing, previous_hash ?? nothing];
  const fits = macs.map((mac) => hashes.map((hash) => timingSafeEqual(mac, hash)));
  if (!usable || !fits.some((fit) => fit.includes(true))) return null;
  if (!fits[0]?.includes(true)) await rehash(db, secrets, client, macs);
  if (use_is_old) await noteUse(db, client.client_id);
  return credential as Credential;
}

/** Hashes a secret that was verified with a key of before anew with the key in use. */
async function rehash(
  db: Db,
  secrets: Secrets,
  client: { client_id: string; client_secret: string },
  macs: readonly Buffer[],
): Promise<void> {
  const set = (hash: string, keyId: string) =>
    `${hash} = CASE WHEN ${hash} = ANY ($2) THEN $3 ELSE ${hash} END, ${keyId} = CASE WHEN ${hash} = ANY ($2) THEN $4 ELSE ${keyId} END`;
  const update = `UPDATE credentials SET ${set('secret_hash', 'secret_key_id')}, ${set('previous_secret_hash', 'previous_secret_key_id')}
    WHERE credential_id = $1`;
  await db.system(async (tx) => {
    await holdSecretKey(tx, secrets);
    await tx.query(update, [client.client_id, macs, secrets.mac(client.client_secret, PURPOSE), secrets.check()]);
  });
}

/** Notes which key hashed the secrets of which that is not on record: they are of the time before the first rotation. */
export async function noteHashingKey(tx: Tx, keyId: string): Promise<void> {
  const note = (column: string) => `UPDATE credentials SET ${column} = $1 WHERE ${column} IS NULL`;
  await tx.query(`${note('secret_key_id')} AND secret_hash IS NOT NULL`, [keyId]);
  await tx.query(`${note('previous_secret_key_id')} AND previous_secret_hash IS NOT NULL`, [keyId]);
}

const UNHASHED = `
  SELECT c.credential_id FROM credentials c LEFT JOIN tenants t USING (tenant_id)
   WHERE t.deleted_at IS NULL AND c.revoked_at IS NULL AND coalesce(c.expires_at > now(), true)
     AND (c.secret_key_id <> $1
          OR c.previous_expires_at > now() AND c.previous_secret_hash IS NOT NULL AND c.previous_secret_key_id <> $1)`;

/** The credentials in use of which a secret is still hashed with another key than this one: how many, and the ids of the first 1,000. */
export async function readUnhashed(tx: Tx, keyId: string): Promise<{ count: number; ids: string[] }> {
  const [row] = await tx.query<{ count: number; ids: string[] }>(
    `WITH u AS (${UNHASHED})
     SELECT count(*)::int AS count, ARRAY(SELECT credential_id FROM u ORDER BY credential_id LIMIT 1000) AS ids FROM u`,
    [keyId],
  );
  return row ?? { count: 0, ids: [] };
}

/** The state of a credential, for the authenticator. */
export async function credentialStatus(
  db: Db,
  credentialId: string,
  { tenantId, userId, consoleSession }: TokenOf,
): Promise<CredentialStatus | null> {
  const [row] = await db.system((tx) =>
    tx.query<CredentialStatus & { [column: string]: unknown }>(
      `SELECT c.tenant_id, c.expires_at, c.revoked_at IS NULL AND t.deleted_at IS NULL AND (t.tenant_id IS NOT NULL OR $2 = '')
                AND ($4::text IS NULL OR EXISTS (SELECT 1 FROM console_sessions s WHERE s.tenant_id = $2 AND s.console_session = $4)) AS usable,
              (SELECT u.token_epoch FROM user_token_epochs u WHERE u.tenant_id = $2 AND u.user_id = $3) AS user_epoch
         FROM credentials c LEFT JOIN tenants t ON t.tenant_id = coalesce(c.tenant_id, $2) WHERE c.credential_id = $1`,
      [credentialId, tenantId, userId ?? null, consoleSession ?? null],
    ),
  );
  return row ?? null;
}
