import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readIfExists, writeAtomic } from '../atomic-file.js';
import type { PostgresBinaries } from './binaries.js';
import type { PostgresHome } from './home.js';

const run = promisify(execFile);

/** The superuser, as which migrations run. */
export const SUPERUSER = 'postgres';
const UNFINISHED = 'initdb-';

/** What is remembered between starts, in `postgres.json` of the data directory, readable by its owner only. */
export interface PostgresMemory {
  password: string;
  port?: number;
}

/** Keeps glibc from giving memory back after every statement and asking for it again: a tenth of what a message costs there. */
const KEEP_MEMORY = { MALLOC_TOP_PAD_: '1048576', MALLOC_TRIM_THRESHOLD_: '67108864' };

/** The environment of every Postgres program: nothing of the caller's PG* variables or locale. */
export function postgresEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, TZ: 'UTC', LC_ALL: locale(), ...KEEP_MEMORY };
}

/**
 * The directory of the cluster. Makes it when there is none: in a folder beside it, then by renaming, so a crash on the way leaves
 * something that the next start throws away.
 * @throws Error when the cluster was made by another major version, or its password is lost
 */
export async function ensureCluster(
  dataDir: string,
  home: PostgresHome,
  binaries: PostgresBinaries,
  newPassword: string | undefined,
  onLine: (line: string) => void,
): Promise<{ directory: string; memory: PostgresMemory }> {
  const directory = join(home.path, 'data');
  await removeUnfinished(home.path);
  const version = await readIfExists(join(directory, 'PG_VERSION'));
  if (version === undefined) {
    onLine('Making the Postgres database (a few seconds, once)');
    const memory = { password: newPassword ?? randomBytes(24).toString('base64url') };
    await writeMemory(dataDir, memory);
    await initialise(home, binaries, memory.password, directory);
    return { directory, memory };
  }
  if (Number.parseInt(version, 10) !== binaries.majorVersion) {
    throw new Error(
      `${directory} was made by Postgres ${version.trim()}, and Postgres ${binaries.majorVersion} is installed: dump and load it, or move it away`,
    );
  }
  return { directory, memory: await readMemory(dataDir, directory) };
}

/** Remembers the port and password for the next start. */
export async function writeMemory(dataDir: string, memory: PostgresMemory): Promise<void> {
  await writeAtomic(memoryFile(dataDir), `${JSON.stringify(memory)}\n`, 0o600);
}

async function readMemory(dataDir: string, directory: string): Promise<PostgresMemory> {
  const text = await readIfExists(memoryFile(dataDir));
  if (text !== undefined) return JSON.parse(text) as PostgresMemory;
  throw new Error(
    `${memoryFile(dataDir)}, which holds the password of ${directory}, is missing: bring it back, or move the database away to begin anew`,
  );
}

function memoryFile(dataDir: string): string {
  return join(dataDir, 'postgres.json');
}

function locale(): string {
  return process.platform === 'darwin' ? 'C' : 'C.UTF-8';
}

async function initialise(home: PostgresHome, binaries: PostgresBinaries, password: string, directory: string) {
  const { identity } = home;
  const workshop = await mkdtemp(join(home.path, UNFINISHED));
  const passwordFile = join(workshop, 'password');
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (identity) {
    await chown(workshop, identity.uid, identity.gid);
    await chown(passwordFile, identity.uid, identity.gid);
  }
  const data = join(workshop, 'data');
  const args = ['-D', data, '--username', SUPERUSER, '--pwfile', passwordFile, '--auth', 'scram-sha-256'];
  args.push('--encoding', 'UTF8', '--locale', locale());
  try {
    await run(binaries.initdb, args, { cwd: '/', env: postgresEnvironment(), ...identity });
    await rename(data, directory);
  } finally {
    await rm(workshop, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function removeUnfinished(home: string): Promise<void> {
  for (const name of await readdir(home)) {
    // An initdb that outlived its parent may still be writing there, hence the retries.
    if (name.startsWith(UNFINISHED)) await rm(join(home, name), { recursive: true, force: true, maxRetries: 5 });
  }
}
