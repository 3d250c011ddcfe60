import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { freePort, isPortFree } from './free-port.js';
import { boundLog, prepareLog } from './log-file.js';
import { postgresBinaries } from './postgres/binaries.js';
import { ensureCluster, writeMemory } from './postgres/cluster.js';
import { postgresHome } from './postgres/home.js';
import { adoptPostmaster, launchPostmaster, POSTGRES_STOP, type PostmasterOptions, postgresUrl } from './postgres/postmaster.js';
import { type Running, Supervisor, terminate } from './supervisor.js';

const DATABASE = 'fleet';
/** Milliseconds to wait for orphans of a killed postmaster to leave its shared memory. */
const ORPHANS_MS = 20_000;

/** What `startPostgres` needs. One process at a time per data directory: see `lockDataDir`. */
export interface PostgresOptions {
  dataDir: string;
  log: Logger;
  /** Shows a line to the person who started the platform. */
  onLine(line: string): void;
  /** The superuser's password when the cluster is made; made up when absent. Later starts use the stored one. */
  superuserPassword?: string;
}

/** A Postgres that runs and is kept running. */
export interface EmbeddedPostgres {
  /** Connection string of the database `fleet` as its superuser, the login that migrations use. Stays the same while it runs. */
  readonly url: string;
  /** The postmaster's process id now; another one after a restart. */
  readonly pid: number;
  /** Whether it already ran, left over from a process that was killed. */
  readonly adopted: boolean;
  /** Fast shutdown; resolves when it has ended. */
  stop(): Promise<void>;
}

/** Starts the packaged Postgres on the data directory, or adopts the one that still runs there, and keeps it running. */
export async function startPostgres({
  dataDir,
  log,
  onLine,
  superuserPassword,
}: PostgresOptions): Promise<EmbeddedPostgres> {
  const home = await postgresHome(dataDir, onLine);
  const binaries = await postgresBinaries(home.identity, onLine);
  const { directory, memory } = await ensureCluster(dataDir, home, binaries, superuserPassword, onLine);
  const logFile = join(dataDir, 'logs', 'postgres.log');
  const options: PostmasterOptions = {
    binaries,
    identity: home.identity,
    directory,
    password: memory.password,
    logFile,
  };
  const adopted = await adoptPostmaster(options, onLine);
  if (!adopted) await prepareLog(logFile);
  const { running, port } = adopted ?? (await firstLaunch(options, memory.port));
  const url = await ready(options, running, port, () => writeMemory(dataDir, { ...memory, port }));
  log.info({ pid: running.pid, port, adopted: adopted !== undefined }, 'embedded Postgres is ready');
  const supervisor = new Supervisor(running, {
    name: 'Postgres',
    start: (signal) => launchPostmaster(options, port, signal),
    stopWith: POSTGRES_STOP,
    housekeeping: () => boundLog(logFile),
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

/** Tries again with another port when somebody took it meanwhile, and while orphans of a killed postmaster end. */
async function firstLaunch(
  options: PostmasterOptions,
  rememberedPort: number | undefined,
): Promise<{ running: Running; port: number }> {
  const began = performance.now();
  let port = await freePort(rememberedPort);
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

/** The last steps before it is supervised; a failure here stops the server again. */
async function ready(
  options: PostmasterOptions,
  running: Running,
  port: number,
  remember: () => Promise<void>,
): Promise<string> {
  try {
    await remember();
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
