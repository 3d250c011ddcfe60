import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { freePort, isPortFree } from './free-port.js';
import { prepareLog, rotateLog } from './log-file.js';
import { postgresBinaries } from './postgres/binaries.js';
import { ensureCluster, writeState } from './postgres/cluster.js';
import { postgresHome } from './postgres/home.js';
import {
  adoptPostmaster,
  launchPostmaster,
  POSTGRES_STOP,
  type PostmasterOptions,
  postgresUrl,
} from './postgres/postmaster.js';
import { type Running, Supervisor, terminate } from './supervisor.js';

const DATABASE = 'fleet';
/** Time limit for orphans of a killed postmaster to release its shared memory. */
const ORPHANS_MS = 20_000;

/** Options of `startPostgres`. Only one process may use a data directory: see `lockDataDir`. */
export interface PostgresOptions {
  dataDir: string;
  log: Logger;
  /** Prints a line for the person who started the platform. */
  onLine(line: string): void;
  /** Password of the superuser when the cluster is created; random by default. Later starts use the stored one. */
  superuserPassword?: string;
  /** The folder of the package that has the programs; by default the one that is installed for this machine. */
  packageFolder?: string;
}

/** A running Postgres, which is restarted when it dies. */
export interface EmbeddedPostgres {
  /** Connection string of the database `fleet` for the superuser, which runs migrations. Constant across restarts. */
  readonly url: string;
  /** Process id of the current postmaster. */
  readonly pid: number;
  /** Whether it was already running, left by a platform that was killed. */
  readonly adopted: boolean;
  /** Fast shutdown; resolves when the server has exited. */
  stop(): Promise<void>;
}

/** Starts the packaged Postgres on the data directory, or adopts one that still runs there, and restarts it when it dies. */
export async function startPostgres({
  dataDir,
  log,
  onLine,
  superuserPassword,
  packageFolder,
}: PostgresOptions): Promise<EmbeddedPostgres> {
  const home = await postgresHome(dataDir, onLine);
  const binaries = await postgresBinaries(home.identity, onLine, packageFolder);
  const { directory, state } = await ensureCluster(dataDir, home, binaries, superuserPassword, onLine);
  const logFile = join(dataDir, 'logs', 'postgres.log');
  const options: PostmasterOptions = {
    binaries,
    identity: home.identity,
    directory,
    password: state.password,
    logFile,
  };
  const adopted = await adoptPostmaster(options, onLine);
  if (!adopted) await prepareLog(logFile);
  const { running, port } = adopted ?? (await firstLaunch(options, state.port));
  const url = await prepareDatabase(options, running, port, () => writeState(dataDir, { ...state, port }));
  log.info({ pid: running.pid, port, adopted: adopted !== undefined }, 'embedded Postgres is ready');
  const supervisor = new Supervisor(running, {
    name: 'Postgres',
    start: (signal) => launchPostmaster(options, port, signal),
    stopWith: POSTGRES_STOP,
    housekeeping: () => rotateLog(logFile),
    log,
    onLine,
  });
  return {
    url,
    get pid() {
      return supervisor.pid;
    },
    adopted: adopted !== undefined,
    stop: () => supervisor.stop(),
  };
}

/** Retries with another port when the port was taken meanwhile, and while orphans of a killed postmaster exit. */
async function firstLaunch(
  options: PostmasterOptions,
  preferredPort: number | undefined,
): Promise<{ running: Running; port: number }> {
  const began = performance.now();
  let port = await freePort(preferredPort);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return { running: await launchPostmaster(options, port, new AbortController().signal), port };
    } catch (error) {
      const orphans = errorMessage(error).includes('shared memory block') && performance.now() - began < ORPHANS_MS;
      const portTaken = attempt < 5 && !(await isPortFree(port));
      if (!orphans && !portTaken) throw error;
      if (portTaken) port = await freePort();
      else await sleep(250);
    }
  }
}

/** Creates the database and saves the port; stops the server on failure. @returns the connection string */
async function prepareDatabase(
  options: PostmasterOptions,
  running: Running,
  port: number,
  save: () => Promise<void>,
): Promise<string> {
  try {
    await save();
    await ensureDatabase(postgresUrl(options.password, port, 'postgres'));
    return postgresUrl(options.password, port, DATABASE);
  } catch (error) {
    await terminate(running, POSTGRES_STOP);
    throw error;
  }
}

async function ensureDatabase(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
    const found = await client.query('select 1 from pg_database where datname = $1', [DATABASE]);
    if (found.rowCount === 0) await client.query(`create database ${DATABASE}`);
  } finally {
    await client.end();
  }
}
