import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { waitForLock } from '../lock-file.js';
import { CLI_VERSION, downloadTemporal, goInstallTemporal, removeTemporary } from './install.js';
import { versionProblem } from './version.js';

const run = promisify(execFile);
const VERSION_MS = 30_000;
const UPGRADE =
  'Upgrade it (https://docs.temporal.io/cli), name another one in TEMPORAL_CLI_PATH, take it off PATH so that the platform installs its own, ' +
  'or set TEMPORAL_ADDRESS to a running cluster.';

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
  const onPath = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  const chosen = [...(configured ? [configured] : []), ...onPath.map((folder) => join(folder, 'temporal'))];
  const others = [lookup.cacheDir, join(homedir(), 'go', 'bin')].map((folder) => join(folder, 'temporal'));
  for (const candidate of new Set([...chosen, ...others])) {
    if (!(await isExecutable(candidate))) continue;
    const problem = await problemOf(candidate);
    if (problem === null) return candidate;
    // The person who chose it is to know; what was installed here is installed anew.
    if (!problem.foreign && chosen.includes(candidate)) throw new Error(`${candidate} ${problem.text}. ${UPGRADE}`);
    lookup.onLine(`${candidate} ${problem.text}; skipping it`);
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
    if ((await isExecutable(target)) && (await problemOf(target)) === null) return target;
    await removeTemporary(target);
    for (const installWith of [downloadTemporal, goInstallTemporal]) {
      try {
        await installWith(target, onLine);
        const problem = await problemOf(target);
        if (problem === null) return target;
        failures.push(`${installWith.name}: the installed program ${problem.text}`);
      } catch (error) {
        log.info({ err: error }, 'an attempt to install Temporal failed');
        onLine(errorMessage(error));
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

/** Why a program cannot be used; null: it can. */
async function problemOf(candidate: string): Promise<ReturnType<typeof versionProblem>> {
  try {
    const { stdout } = await run(candidate, ['--version'], { timeout: VERSION_MS });
    return versionProblem(stdout);
  } catch (error) {
    return { foreign: true, text: `does not run: ${errorMessage(error).split('\n')[0]}` };
  }
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false, // absent, or not executable for this user
  );
}
