import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { waitForLock } from '../lock-file.js';
import { CLI_VERSION, downloadTemporal, goInstallTemporal, removeUnfinished } from './install.js';

const run = promisify(execFile);
const VERSION_MS = 30_000;

export interface TemporalLookup {
  /** The user's cache folder: looked in, and installed into. */
  cacheDir: string;
  log: Logger;
  onLine(line: string): void;
}

/**
 * The path of a `temporal` program that runs: `TEMPORAL_CLI_PATH`, PATH, the cache folder, `~/go/bin`, the download of the SDKs,
 * `go install`. What is installed lands in the cache folder, once for every checkout of this user.
 * @throws Error naming the ways to get one
 */
export async function temporalBinary(lookup: TemporalLookup): Promise<string> {
  return (await installed(lookup)) ?? (await install(lookup));
}

async function installed(lookup: TemporalLookup): Promise<string | undefined> {
  const named = process.env.TEMPORAL_CLI_PATH;
  if (named && !(await isExecutable(named)))
    lookup.onLine(`TEMPORAL_CLI_PATH ${named} is not a program; looking elsewhere`);
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== ''),
    lookup.cacheDir,
    join(homedir(), 'go', 'bin'),
  ];
  const candidates = [...(named ? [named] : []), ...folders.map((folder) => join(folder, 'temporal'))];
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
    // Whoever held the lock may have installed it meanwhile.
    if ((await isExecutable(target)) && (await runs(target, lookup))) return target;
    await removeUnfinished(target);
    for (const way of [downloadTemporal, goInstallTemporal]) {
      try {
        await way(target, onLine);
        if (await runs(target, lookup)) return target;
        failures.push(`${way.name}: what it installed does not run`);
      } catch (error) {
        log.info({ err: error }, 'one way to install Temporal failed');
        failures.push(errorMessage(error));
      }
    }
  } finally {
    await lock.release();
  }
  throw new Error(
    `No temporal program was found and none could be installed (${failures.join('; ')}). ` +
      'Set TEMPORAL_ADDRESS to a running cluster; or install the Temporal CLI (https://docs.temporal.io/cli) on PATH or name it in ' +
      `TEMPORAL_CLI_PATH; or install Go, and "go install github.com/temporalio/cli/cmd/temporal@${CLI_VERSION}" is done for you.`,
  );
}

async function runs(candidate: string, { onLine }: TemporalLookup): Promise<boolean> {
  try {
    const { stdout } = await run(candidate, ['--version'], { timeout: VERSION_MS });
    if (stdout.startsWith('temporal version')) return true;
    onLine(`${candidate} is not the Temporal CLI; passing over it`);
  } catch (error) {
    onLine(`${candidate} does not run; passing over it: ${errorMessage(error).split('\n')[0]}`);
  }
  return false;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false, // absent or closed to this user: either way not a candidate
  );
}
