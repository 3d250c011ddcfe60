import { timingSafeEqual } from 'node:crypto';
import type { Db } from '../db/pool.js';
import type { Secrets } from '../runtime/secrets.js';

const FACT = 'secret_key_check';

/** The secret key of this process is not that of the database. */
export class SecretKeyMismatch extends Error {}

/**
 * Compares the secret key of this process with that of the database. The first process on a database stores the value to compare with.
 * @throws SecretKeyMismatch for another key, with which no stored secret can be decrypted and no credential verified
 */
export async function checkSecretKey(db: Db, secrets: Secrets): Promise<void> {
  const own = secrets.mac('the key of this platform', FACT);
  const stored = await db.system(async (tx) => {
    const insert = 'INSERT INTO platform_facts (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING';
    await tx.query(insert, [FACT, own.toString('base64')]);
    const [row] = await tx.query<{ value: string }>('SELECT value FROM platform_facts WHERE name = $1', [FACT]);
    return Buffer.from(row?.value ?? '', 'base64');
  });
  if (stored.length === own.length && timingSafeEqual(stored, own)) return;
  throw new SecretKeyMismatch(
    'FLEET_SECRET_KEY (or secret.key in FLEET_DATA_DIR) is not the key that this database was set up with: ' +
      'its credentials and stored secrets cannot be read with it. Give the original key, or an empty database.',
  );
}
