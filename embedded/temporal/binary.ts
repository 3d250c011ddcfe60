import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { waitForLock } from '../lock-file.js';
import { CLI_VERSION, downloadTemporal, goInstallTemporal, removeTemporary } from './install.js';

const run = promisify(execFile);
const VERSION_MS = 30_000;

export interface TemporalLookup {
  /** The user's cache folder, which is searched and installed into. */
  cacheDir: string;
  log: Logger;
  onLine(line: string): void;
}

/**
 * The path of a working `temporal` program: from `TEMPORAL_CLI_PATH`, PATH, the cache folder or `~/go/bin`, else installed by download or
 * `go install` into the cache folder, which all checkouts of this user share.
 * @throws Error with the ways to get one
 */
export async function temporalBinary(lookup: TemporalLookup): Promise<string> {
  return (await findInstalled(lookup)) ?? (await install(lookup));
}

async function findInstalled(lookup: TemporalLookup): Promise<string | undefined> {
  const configured = process.env.TEMPORAL_CLI_PATH;
  if (configured && !(await isExecutable(configured)))
    lookup.onLine(`TEMPORAL_CLI_PATH ${configured} is not a program; searching elsewhere`);
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== ''),
    lookup.cacheDir,
    join(homedir(), 'go', 'bin'),
  ];
  const candidates = [...(configured ? [configured] : []), ...folders.map((folder) => join(folder, 'temporal'))];
  for (const candidate of new Set(candidates)) {
    if ((await isExecutable(candidate)) && (await runs(candidate, lookup))) return candidate;
  }
  return undefined;
}

async function install(lookup: TemporalLookup): Promise<string> {
  const { cacheDir, log, onLine } = lookup;
  const lock = await waitForLock(join(cacheDir, 'temporal.lock'), ({ pid }) =>
    onLine(`Process ${pid} is installing Temporal; waiting for it`),
  );
  const failures: string[] = [];
  try {
    const target = join(cacheDir, 'temporal');
    // The previous holder of the lock may have installed it.
    if ((await isExecutable(target)) && (await runs(target, lookup))) return target;
    await removeTemporary(target);
    for (const installWith of [downloadTemporal, goInstallTemporal]) {
      try {
        await installWith(target, onLine);
        if (await runs(target, lookup)) return target;
        failures.push(`${installWith.name}: the installed program does not run`);
      } catch (error) {
        log.info({ err: error }, 'an attempt to install Temporal failed');
        failures.push(errorMessage(error));
      }
    }
  } finally {
    await lock.release();
  }
  throw new Error(
    `No temporal program was found and none could be installed (${failures.join('; ')}). ` +
      'Set TEMPORAL_ADDRESS to a running cluster; or install the Temporal CLI (https://docs.temporal.io/cli) on PATH or name it in ' +
      `TEMPORAL_CLI_PATH; or install Go, and the platform runs "go install github.com/temporalio/cli/cmd/temporal@${CLI_VERSION}".`,
  );
}

async function runs(candidate: string, { onLine }: TemporalLookup): Promise<boolean> {
  try {
    const { stdout } = await run(candidate, ['--version'], { timeout: VERSION_MS });
    if (stdout.startsWith('temporal version')) return true;
    onLine(`${candidate} is not the Temporal CLI; skipping it`);
  } catch (error) {
    onLine(`${candidate} does not run; skipping it: ${errorMessage(error).split('\n')[0]}`);
  }
  return false;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false, // absent, or not executable for this user
  );
}
