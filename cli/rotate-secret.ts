import { keysInUse } from '../auth/secret-check.js';
import { type RotationReport, rotateSecretKey } from '../auth/secret-rotation.js';
import { createSecrets } from '../runtime/secrets.js';
import { CliError, type Store } from './fleet-store.js';

const HOW = `The database uses this FLEET_SECRET_KEY already. To rotate it, restart every process with
FLEET_SECRET_KEY set to a new key and FLEET_PREVIOUS_SECRET_KEY to this one, and run this command with the same two.`;

/**
 * Rotates the secret key: that of the data directory is replaced by a new one, those of the settings are given. Run again after a crash, it
 * finishes what was begun.
 * @throws CliError when there is no new key
 */
export async function rotateSecret({ db, keys, renewKeys }: Store): Promise<RotationReport & Record<string, unknown>> {
  const stored = await db.system((tx) => keysInUse(tx));
  const [newest, ...others] = keys;
  const isNew = createSecrets(newest).check() !== stored?.inUse || stored.before !== null;
  if (!isNew && !renewKeys) throw new CliError(HOW);
  const [next = newest, ...previous] = isNew || !renewKeys ? [newest, ...others] : await renewKeys();
  return { ...(await rotateSecretKey(db, createSecrets(next, previous), createSecrets(next).check())) };
}
