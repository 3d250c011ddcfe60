import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose';
import { LIMITS } from '../contracts/limits.js';
import { queryJson } from '../db/json-rows.js';
import type { Db, Tx } from '../db/pool.js';
import { holdSecretKey } from '../db/secret-key.js';
import { SEALED } from '../runtime/sealed-columns.js';
import type { Secrets } from '../runtime/secrets.js';
import type { KeyKind, StoredKey } from './key-ring.js';

const { purpose: PURPOSE } = SEALED.signingKeys;
/** There is one active key of each. */
const KINDS: readonly KeyKind[] = ['token', 'receipt'];
const LOCK = 7_301_846_227;
/** Those of tokens first. */
const NEWEST_FIRST = 'ORDER BY kind DESC, created_at DESC, kid DESC';
/** A node may go on signing with a retired key for as long as it keeps its keys: 60 s, and 240 s where they cannot be read again. */
const RETIREMENT_MARGIN_SECONDS = 300;

/** What `fleet keys list` shows of a key. */
export interface SigningKeySummary {
  kid: string;
  kind: KeyKind;
  created_at: string;
  retired_at: string | null;
}

/** One transaction in which nobody else changes keys. */
function exclusively<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  return db.system(async (tx) => {
    await tx.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    return work(tx);
  });
}

async function insertKey(tx: Tx, secrets: Secrets, kind: KeyKind): Promise<string> {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  const publicJwk = await exportJWK(publicKey);
  const kid = await calculateJwkThumbprint(publicJwk);
  await holdSecretKey(tx, secrets);
  await tx.query('INSERT INTO signing_keys (kid, kind, public_jwk, private_jwk_encrypted) VALUES ($1, $2, $3, $4)', [
    kid,
    kind,
    JSON.stringify(publicJwk),
    secrets.encrypt(JSON.stringify(await exportJWK(privateKey)), PURPOSE),
  ]);
  return kid;
}

async function readKeys(tx: Tx, secrets: Secrets): Promise<StoredKey[]> {
  const rows = await tx.query<Omit<StoredKey, 'privateJwk'> & { encrypted: Buffer | null }>(
    `SELECT kid, kind, public_jwk, private_jwk_encrypted AS encrypted, retired_at IS NOT NULL AS retired FROM signing_keys ${NEWEST_FIRST}`,
  );
  return rows.map(({ encrypted, ...key }) => ({
    ...key,
    privateJwk: () => JSON.parse(secrets.decrypt(encrypted ?? Buffer.alloc(0), PURPOSE).toString()),
  }));
}

const hasActive = (keys: readonly Pick<StoredKey, 'kind' | 'retired'>[], kind: KeyKind) =>
  keys.some((key) => key.kind === kind && !key.retired);

/** Every key that still verifies, newest first; makes the first one of each kind when there is none. */
export async function loadSigningKeys(db: Db, secrets: Secrets): Promise<StoredKey[]> {
  const keys = await db.system((tx) => readKeys(tx, secrets));
  if (KINDS.every((kind) => hasActive(keys, kind))) return keys;
  return exclusively(db, async (tx) => {
    const before = await readKeys(tx, secrets);
    for (const kind of KINDS) if (!hasActive(before, kind)) await insertKey(tx, secrets, kind);
    return readKeys(tx, secrets);
  });
}

/**
 * Puts a new key of each kind in the place of the active one. Retired keys of tokens verify for as long as a token that they signed can live
 * (604800 s) and are deleted at the first rotation after that; those of receipts verify for ever.
 * @returns the ids of the new keys of tokens and of receipts, and those retired now
 */
export async function rotateSigningKeys(
  db: Db,
  secrets: Secrets,
): Promise<{ kid: string; receipt_kid: string; retired: string[] }> {
  return exclusively(db, async (tx) => {
    const retired = await tx.query<{ kid: string }>(
      'UPDATE signing_keys SET retired_at = now() WHERE retired_at IS NULL RETURNING kid',
    );
    await tx.query(`DELETE FROM signing_keys WHERE kind = 'token' AND retired_at < now() - make_interval(secs => $1)`, [
      LIMITS.tokenLifetimeSecondsMax + RETIREMENT_MARGIN_SECONDS,
    ]);
    const kid = await insertKey(tx, secrets, 'token');
    const receipt_kid = await insertKey(tx, secrets, 'receipt');
    return { kid, receipt_kid, retired: retired.map((key) => key.kid) };
  });
}

/** All keys, newest first. */
export function listSigningKeys(db: Db): Promise<SigningKeySummary[]> {
  const select = `SELECT kid, kind, created_at, retired_at FROM signing_keys ${NEWEST_FIRST}`;
  return db.system((tx) => queryJson<SigningKeySummary>(tx, select));
}
