import { setTimeout as delay } from 'node:timers/promises';
import { isLockTimeout } from '../db/errors.js';
import type { Db, Tx } from '../db/pool.js';
import type { Secrets } from '../runtime/secrets.js';
import { noteHashingKey, readUnhashed } from './credentials.js';
import { type SealedAnew, sealAllAnew } from './seal-anew.js';
import { keysInUse, SecretKeyMismatch, storeKeysInUse } from './secret-check.js';

/** Until every process has noticed the new key, and can read what is sealed with it: they look every 2 s. */
const NOTICED_MS = 10_000;
/** How long the change of the key waits for transactions that seal something, and how often it tries. */
const LOCK_WAIT_MS = 1_000;
const LOCK_TRIES = 60;
/** Ids of credentials in an error message. */
const IDS_SHOWN = 10;

/** What a rotation did. */
export interface RotationReport extends SealedAnew {
  /** Client secrets that are hashed with an older key: each is hashed anew at its next use. They need that key until then. */
  credentials_left: number;
}

/**
 * Makes sure that no client secret needs a key older than the one in use: a rotation would take that key away from it.
 * @throws SecretKeyMismatch that names the credentials, and what to do
 */
export async function requireNoneLeft(tx: Tx, inUse: string): Promise<void> {
  const { count, ids } = await readUnhashed(tx, inUse);
  if (count === 0) return;
  const shown = ids.slice(0, IDS_SHOWN).join(', ');
  throw new SecretKeyMismatch(
    `${count} client secrets still need the secret key of before the last rotation: ${shown}${count > IDS_SHOWN ? ', …' : ''}. ` +
      'Another rotation would end them. Each is hashed anew when its client next asks for a token; end those that are not used with ' +
      '"fleet credentials revoke ID" or "fleet credentials rotate ID --overlap-seconds 0". "fleet keys status" lists them.',
  );
}

/** Has the database use the new key. @returns whether values that the key before has sealed may be left */
async function switchKey(tx: Tx, secrets: Secrets, next: string): Promise<boolean> {
  await tx.query(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`);
  // Waits for the transactions that seal something now (holdSecretKey). Whatever seals after it uses the new key.
  await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended('secret_key', 0))`);
  const stored = await keysInUse(tx, true);
  if (!stored || !secrets.has(stored.inUse))
    throw new SecretKeyMismatch('The database uses neither of these secret keys.');
  if (stored.inUse === next) return stored.before !== null;
  if (stored.before !== null)
    throw new SecretKeyMismatch(
      'A rotation to another secret key is not finished. Run "fleet keys rotate-secret" with the two keys of that rotation first.',
    );
  await noteHashingKey(tx, stored.inUse);
  await requireNoneLeft(tx, stored.inUse);
  await storeKeysInUse(tx, { inUse: next, before: stored.inUse });
  return true;
}

/** `switchKey`, again and again while long transactions hold the key: none of the others waits for longer than a second. */
async function switchKeyOnceFree(db: Db, secrets: Secrets, next: string): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      return await db.system((tx) => switchKey(tx, secrets, next));
    } catch (error) {
      if (!isLockTimeout(error) || tries === LOCK_TRIES) throw error;
      await delay(LOCK_WAIT_MS);
    }
  }
}

/** Notes that nothing needs the key before, unless a later rotation has begun meanwhile. */
async function finish(tx: Tx, next: string): Promise<void> {
  const stored = await keysInUse(tx, true);
  if (stored?.inUse === next) await storeKeysInUse(tx, { inUse: next, before: null });
}

/**
 * Rotates the secret key while the platform runs: from here on the new key is in use and the old one accepted for reading; then everything that
 * is sealed is sealed anew. A run that dies is finished by the next, and a run with the key in use seals what an older key has sealed. Values that
 * none of the keys opens stay as they are and are reported.
 * @param secrets holds both keys
 * @param next the check value of the new key
 * @param noticedMs how long to wait until every process can read with the new key
 * @throws SecretKeyMismatch when the database uses another key, an earlier rotation is not finished, or client secrets need an older key
 */
export async function rotateSecretKey(
  db: Db,
  secrets: Secrets,
  next: string,
  noticedMs = NOTICED_MS,
): Promise<RotationReport> {
  const isUnderWay = await switchKeyOnceFree(db, secrets, next);
  secrets.activate(next);
  if (isUnderWay) await delay(noticedMs);
  const sealed = await sealAllAnew(db, secrets);
  await db.system((tx) => finish(tx, next));
  const { count } = await db.system((tx) => readUnhashed(tx, next));
  return { ...sealed, credentials_left: count };
}
