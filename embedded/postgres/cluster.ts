import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readIfExists, writeAtomic } from '../atomic-file.js';
import type { PostgresBinaries } from './binaries.js';
import type { PostgresHome } from './home.js';

const run = promisify(execFile);

/** The superuser, which runs migrations. */
export const SUPERUSER = 'postgres';
const TEMPORARY_PREFIX = 'initdb-';

/** State that is kept between starts, in `postgres.json` of the data directory, readable only by its owner. */
export interface PostgresState {
  password: string;
  port?: number;
}

/** Keeps glibc from returning memory to the system after every statement; saves a tenth of the Postgres CPU time of a message. */
const MALLOC_SETTINGS = { MALLOC_TOP_PAD_: '1048576', MALLOC_TRIM_THRESHOLD_: '67108864' };

/** The environment of the Postgres programs, without the caller's PG* variables and locale. */
export function postgresEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, TZ: 'UTC', LC_ALL: locale(), ...MALLOC_SETTINGS };
}

/**
 * The directory of the cluster. A new cluster is created in a temporary folder and renamed; the next start removes what a crash leaves.
 * @throws Error when another major version created the cluster, or its password is missing
 */
export async function ensureCluster(
  dataDir: string,
  home: PostgresHome,
  binaries: PostgresBinaries,
  newPassword: string | undefined,
  onLine: (line: string) => void,
): Promise<{ directory: string; state: PostgresState }> {
  const directory = join(home.path, 'data');
  await removeTemporary(home.path);
  const version = await readIfExists(join(directory, 'PG_VERSION'));
  if (version === undefined) {
    onLine('Creating the Postgres database (once, a few seconds)');
    const state = { password: newPassword ?? randomBytes(24).toString('base64url') };
    await writeState(dataDir, state);
    await runInitdb(home, binaries, state.password, directory);
    return { directory, state };
  }
  if (Number.parseInt(version, 10) !== binaries.majorVersion) {
    throw new Error(
      `${directory} was created by Postgres ${version.trim()}, and Postgres ${binaries.majorVersion} is installed: dump and load it, or move it away`,
    );
  }
  return { directory, state: await readState(dataDir, directory) };
}

/** Saves the port and password for the next start. */
export async function writeState(dataDir: string, state: PostgresState): Promise<void> {
  await writeAtomic(stateFile(dataDir), `${JSON.stringify(state)}\n`, 0o600);
}

async function readState(dataDir: string, directory: string): Promise<PostgresState> {
  const text = await readIfExists(stateFile(dataDir));
  if (text !== undefined) return JSON.parse(text) as PostgresState;
  throw new Error(
    `${stateFile(dataDir)}, which holds the password of ${directory}, is missing: restore it, or move the database away to start with a new one`,
  );
}

function stateFile(dataDir: string): string {
  return join(dataDir, 'postgres.json');
}

function locale(): string {
  return process.platform === 'darwin' ? 'C' : 'C.UTF-8';
}

async function runInitdb(home: PostgresHome, binaries: PostgresBinaries, password: string, directory: string) {
  const { identity } = home;
  const temporary = await mkdtemp(join(home.path, TEMPORARY_PREFIX));
  const passwordFile = join(temporary, 'password');
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (identity) {
    await chown(temporary, identity.uid, identity.gid);
    await chown(passwordFile, identity.uid, identity.gid);
  }
  const data = join(temporary, 'data');
  const args = ['-D', data, '--username', SUPERUSER, '--pwfile', passwordFile, '--auth', 'scram-sha-256'];
  args.push('--encoding', 'UTF8', '--locale', locale());
  try {
    await run(binaries.initdb, args, { cwd: '/', env: postgresEnvironment(), ...identity });
    await rename(data, directory);
  } finally {
    await rm(temporary, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function removeTemporary(home: string): Promise<void> {
  for (const name of await readdir(home)) {
    // Retries: an initdb that outlived its parent may still write there.
    if (name.startsWith(TEMPORARY_PREFIX)) await rm(join(home, name), { recursive: true, force: true, maxRetries: 5 });
  }
}
