import { readUnhashed } from '../auth/credentials.js';
import { sealAllAnew } from '../auth/seal-anew.js';
import { keysInUse } from '../auth/secret-check.js';
import { type RotationReport, requireNoneLeft, rotateSecretKey } from '../auth/secret-rotation.js';
import { createSecrets } from '../runtime/secrets.js';
import { CliError, type Store } from './fleet-store.js';

const HOW = `The database uses this FLEET_SECRET_KEY already. To rotate it, restart every process with
FLEET_SECRET_KEY set to a new key and FLEET_PREVIOUS_SECRET_KEY to this one, and run this command with the same two.`;

const UNREADABLE =
  'None of the given keys opens the rows in unreadable_rows. If you have the key that sealed them, run this command again with it as ' +
  'FLEET_PREVIOUS_SECRET_KEY (or in secret.key.previous). Otherwise their secrets are lost: docs/operations.md says how to replace them.';

/** Runs the rotation to the first of the keys. */
async function rotateTo(
  db: Store['db'],
  [next, ...others]: [string, ...string[]],
): Promise<RotationReport & Record<string, unknown>> {
  const report = await rotateSecretKey(db, createSecrets(next, others), createSecrets(next).check());
  return { ...report, ...(report.unreadable_rows.length > 0 && { advice: UNREADABLE }) };
}

/**
 * Rotates the secret key: that of the data directory is replaced by a new one, those of the settings are given. Run again after a crash, it
 * finishes what was begun. The key before the last rotation is kept until nothing needs it.
 * @throws CliError when there is no new key
 * @throws SecretKeyMismatch while client secrets need a key that would be lost
 */
export async function rotateSecret({ db, keys, renewKeys }: Store): Promise<RotationReport & Record<string, unknown>> {
  const stored = await db.system((tx) => keysInUse(tx));
  const [newest, ...others] = keys;
  const inUse = createSecrets(newest, others);
  const isBegun = inUse.check() !== stored?.inUse || stored.before !== null;
  if (isBegun || (!renewKeys && others.length > 0)) return rotateTo(db, keys);
  if (!renewKeys) throw new CliError(HOW);
  // The new key takes the place of the one before, which nothing may need from here on.
  await sealAllAnew(db, inUse);
  await db.system((tx) => requireNoneLeft(tx, inUse.check()));
  const [next = newest, ...previous] = await renewKeys();
  return rotateTo(db, [next, ...previous]);
}

/** Whether a rotation is under way, and which credentials still need the key of before the last one. */
export async function secretKeyStatus({ db }: Store): Promise<Record<string, unknown>> {
  return db.system(async (tx) => {
    const stored = await keysInUse(tx);
    if (!stored) throw new CliError('The database has no secret key yet. Start the platform once.');
    const { count, ids } = await readUnhashed(tx, stored.inUse);
    return { rotation_under_way: stored.before !== null, credentials_left: count, credential_ids_left: ids };
  });
}
