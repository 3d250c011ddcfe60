import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, readdir, realpath, rmdir, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Identity } from '../spawn-server.js';

const run = promisify(execFile);

/** Folder for the cluster when only root can reach the data directory. */
const SHARED_STATE = '/var/lib/agent-fleet';
/** The user `nobody` on most systems; Postgres refuses to run as root. */
const UNPRIVILEGED: Identity = { uid: 65534, gid: 65534 };

/** The folder of the cluster, and the user who owns it and runs Postgres; undefined for the user of this process. */
export interface PostgresHome {
  path: string;
  identity: Identity | undefined;
}

/**
 * The folder `postgres` of the data directory, created when missing. For root it belongs to an unprivileged user; when that user cannot
 * reach it, `postgres` becomes a link to a folder under /var/lib.
 */
export async function postgresHome(dataDir: string, onLine: (line: string) => void): Promise<PostgresHome> {
  await mkdir(dataDir, { recursive: true });
  const entry = join(dataDir, 'postgres');
  if (process.getuid?.() !== 0) {
    await mkdir(entry, { recursive: true, mode: 0o700 });
    return { path: await realpath(entry), identity: undefined };
  }
  await chmod(dataDir, (await stat(dataDir)).mode | 0o011); // others may pass through, but not list it
  await mkdir(entry, { recursive: true });
  const home = await chownHome(await realpath(entry));
  if (await canUse(home)) return home;
  if ((await readdir(home.path)).length > 0) {
    throw new Error(
      `Postgres runs as user ${home.identity?.uid}, who has no access to ${home.path}: let others pass through its parent folders (chmod o+x)`,
    );
  }
  return linkedHome(entry, onLine);
}

/** Gives a folder of root to the unprivileged user. Any other owner is kept, so that an existing cluster stays readable. */
async function chownHome(path: string): Promise<PostgresHome> {
  const { uid, gid } = await stat(path);
  if (uid !== 0) return { path, identity: { uid, gid } };
  await chown(path, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
  await chmod(path, 0o700);
  return { path, identity: UNPRIVILEGED };
}

async function linkedHome(entry: string, onLine: (line: string) => void): Promise<PostgresHome> {
  await mkdir(SHARED_STATE, { recursive: true });
  await chmod(SHARED_STATE, 0o755);
  const home = await chownHome(await mkdtemp(join(SHARED_STATE, 'postgres-')));
  if (!(await canUse(home))) throw new Error(`Postgres cannot use ${home.path}: set DATABASE_URL`);
  await rmdir(entry);
  await symlink(home.path, entry);
  onLine(`Postgres does not run as root and only root may enter ${entry}; its data is in ${home.path}`);
  return home;
}

async function canUse({ path, identity }: PostgresHome): Promise<boolean> {
  return run('/bin/sh', ['-c', 'cd "$1" && test -w .', 'sh', path], { cwd: '/', ...identity }).then(
    () => true,
    () => false, // a failure means no access
  );
}
