import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, readdir, realpath, rmdir, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Identity } from '../spawn-server.js';

const run = promisify(execFile);

/** Where the cluster goes when the data directory lies behind a folder that only root may enter. */
const SHARED_STATE = '/var/lib/agent-fleet';
/** The user `nobody` of most systems: Postgres refuses to run as root. */
const UNPRIVILEGED: Identity = { uid: 65534, gid: 65534 };

/** The folder that holds the cluster, and the user who owns it and runs Postgres (undefined: the user of this process). */
export interface PostgresHome {
  path: string;
  identity: Identity | undefined;
}

/**
 * The folder `postgres` of the data directory, made when it is missing. As root it belongs to an unprivileged user; where that
 * user cannot enter it, `postgres` is a link to a folder under /var/lib, and stays one.
 */
export async function postgresHome(dataDir: string, onLine: (line: string) => void): Promise<PostgresHome> {
  await mkdir(dataDir, { recursive: true });
  const entry = join(dataDir, 'postgres');
  if (process.getuid?.() !== 0) {
    await mkdir(entry, { recursive: true, mode: 0o700 });
    return { path: await realpath(entry), identity: undefined };
  }
  await chmod(dataDir, (await stat(dataDir)).mode | 0o011); // to pass through, not to list
  await mkdir(entry, { recursive: true });
  const home = await ownedHome(await realpath(entry));
  if (await canUse(home)) return home;
  if ((await readdir(home.path)).length > 0) {
    throw new Error(
      `Postgres runs as user ${home.identity?.uid}, to whom ${home.path} is closed: let others pass through its parent folders (chmod o+x)`,
    );
  }
  return elsewhere(entry, onLine);
}

/** A folder that already belongs to somebody who is not root keeps its owner, so the cluster inside stays readable. */
async function ownedHome(path: string): Promise<PostgresHome> {
  const { uid, gid } = await stat(path);
  if (uid !== 0) return { path, identity: { uid, gid } };
  await chown(path, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
  await chmod(path, 0o700);
  return { path, identity: UNPRIVILEGED };
}

async function elsewhere(entry: string, onLine: (line: string) => void): Promise<PostgresHome> {
  await mkdir(SHARED_STATE, { recursive: true });
  await chmod(SHARED_STATE, 0o755);
  const home = await ownedHome(await mkdtemp(join(SHARED_STATE, 'postgres-')));
  if (!(await canUse(home))) throw new Error(`Postgres cannot use ${home.path}: set DATABASE_URL`);
  await rmdir(entry);
  await symlink(home.path, entry);
  onLine(`Postgres does not run as root and only root may enter ${entry}; its data is in ${home.path}`);
  return home;
}

async function canUse({ path, identity }: PostgresHome): Promise<boolean> {
  return run('/bin/sh', ['-c', 'cd "$1" && test -w .', 'sh', path], { cwd: '/', ...identity }).then(
    () => true,
    () => false, // the shell's exit code is the answer
  );
}
