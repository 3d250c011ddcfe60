import { homedir } from 'node:os';
import { join } from 'node:path';

/** The user's cache folder for programs that all checkouts share. This function does not create it. */
export function userCacheDir(): string {
  const base =
    process.env.XDG_CACHE_HOME ||
    (process.platform === 'darwin' ? join(homedir(), 'Library', 'Caches') : join(homedir(), '.cache'));
  return join(base, 'agent-fleet');
}
