import type { Db, Tx } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import type { Secrets } from '../runtime/secrets.js';

/** The fact that names the key in use by its check value. */
const IN_USE = 'secret_key_check';
/** The same of the key before it, while values that it sealed may be left. */
const BEFORE = 'previous_secret_key_check';
/** How often a process looks whether the key was rotated. */
const WATCH_MS = 2_000;

/** Which key the database uses, and, during a rotation, which one before. */
export interface KeysInUse {
  inUse: string;
  before: string | null;
}

/** The secret keys of this process are not those of the database. */
export class SecretKeyMismatch extends Error {}

/** Reads which keys the database uses; null before the first process has stored one. @param lock until the end of the transaction */
export async function keysInUse(tx: Tx, lock = false): Promise<KeysInUse | null> {
  const rows = await tx.query<{ name: string; value: string }>(
    `SELECT name, value FROM platform_facts WHERE name = ANY ($1) ORDER BY name ${lock ? 'FOR UPDATE' : ''}`,
    [[IN_USE, BEFORE]],
  );
  const facts = new Map(rows.map(({ name, value }) => [name, value]));
  const inUse = facts.get(IN_USE);
  return inUse === undefined ? null : { inUse, before: facts.get(BEFORE) ?? null };
}

/** Stores which keys the database uses. */
export async function storeKeysInUse(tx: Tx, { inUse, before }: KeysInUse): Promise<void> {
  const store = 'INSERT INTO platform_facts (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2';
  await tx.query(store, [IN_USE, inUse]);
  if (before === null) await tx.query('DELETE FROM platform_facts WHERE name = $1', [BEFORE]);
  else await tx.query(store, [BEFORE, before]);
}

/**
 * Compares the secret keys of this process with those of the database, and has the one in use used. The first process on a database stores
 * its key.
 * @throws SecretKeyMismatch for another key, with which no stored secret can be decrypted and no credential verified
 */
export async function checkSecretKey(db: Db, secrets: Secrets): Promise<void> {
  const stored = await db.system(async (tx) => {
    const insert = 'INSERT INTO platform_facts (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING';
    await tx.query(insert, [IN_USE, secrets.check()]);
    return keysInUse(tx);
  });
  if (!stored || !secrets.activate(stored.inUse)) {
    throw new SecretKeyMismatch(
      'FLEET_SECRET_KEY (or secret.key in FLEET_DATA_DIR) is not the key that this database was set up with: ' +
        'its credentials and stored secrets cannot be read with it. Give the original key, or an empty database.',
    );
  }
  if (stored.before !== null && !secrets.has(stored.before)) {
    throw new SecretKeyMismatch(
      'The secret key of this database is being rotated: give the key of before as FLEET_PREVIOUS_SECRET_KEY ' +
        'until "fleet keys rotate-secret" has finished.',
    );
  }
}

/**
 * Looks every 2 s whether the secret key was rotated, and then uses the new one.
 * @param readKeys keys that may be new: of the data directory
 */
export function createKeyWatch(options: {
  db: Db;
  secrets: Secrets;
  readKeys: () => Promise<string[]>;
  log: Pick<Logger, 'info' | 'warn'>;
}): Loop {
  const { db, secrets, readKeys, log } = options;
  const look = async () => {
    const stored = await db.system((tx) => keysInUse(tx));
    if (!stored || stored.inUse === secrets.check()) return;
    if (!secrets.has(stored.inUse)) secrets.add(await readKeys());
    if (!secrets.activate(stored.inUse))
      throw new Error(
        'the secret key was rotated, and this process does not have the new one: restart it with both keys',
      );
    log.info({}, 'the secret key was rotated: the new one is in use');
  };
  return new Loop({ name: 'secret key', intervalMs: WATCH_MS, work: look, log });
}
