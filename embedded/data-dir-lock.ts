import { join } from 'node:path';
import { type HeldLock, tryLock } from './lock-file.js';

/**
 * Reserves a data directory for this process: two platforms on one directory would adopt and stop each other's servers.
 * The lock of a process that has ended is taken over.
 * @throws Error naming the pid that holds the directory, and what to do
 */
export async function lockDataDir(dir: string): Promise<HeldLock> {
  const answer = await tryLock(join(dir, 'platform.lock'));
  if (!('holder' in answer)) return answer;
  const { pid, since } = answer.holder;
  throw new Error(
    `The data directory ${dir} is in use by process ${pid}, which runs the platform on it since ${since}. ` +
      `Stop that one first (kill ${pid}), or give this one a data directory of its own (README.md, "Data directory").`,
  );
}
