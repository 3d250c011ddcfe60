import { homedir } from 'node:os';
import { join } from 'node:path';

/** The folder of this user for what is fetched or built once and shared by every checkout. It is not created here. */
export function userCacheDir(): string {
  const base =
    process.env.XDG_CACHE_HOME ||
    (process.platform === 'darwin' ? join(homedir(), 'Library', 'Caches') : join(homedir(), '.cache'));
  return join(base, 'agent-fleet');
}
