import { PlatformError } from '../runtime/errors.js';
import type { Secrets } from '../runtime/secrets.js';
import type { Tx } from './pool.js';

/**
 * Keeps the key in use until the transaction ends, and has this process use it: whoever stores what is sealed or hashed with it calls this first,
 * in the same transaction. So nothing is sealed with an older key once a rotation has begun, by whichever process.
 * @throws PlatformError SERVICE_UNAVAILABLE in a process that does not have the key in use, because it was rotated since the process started
 */
export async function holdSecretKey(tx: Tx, secrets: Pick<Secrets, 'activate'>): Promise<void> {
  const [row] = await tx.query<{ in_use: string | null }>('SELECT hold_secret_key() AS in_use', [], 'hold_secret_key');
  const inUse = row?.in_use ?? null;
  if (inUse !== null && !secrets.activate(inUse))
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      'The secret key was rotated, and this process does not have the new one.',
    );
}
