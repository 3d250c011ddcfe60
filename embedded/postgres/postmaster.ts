import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { readIfExists } from '../atomic-file.js';
import { lastLines } from '../log-file.js';
import type { PostgresBinaries } from './binaries.js';
import { postgresEnvironment, SUPERUSER } from './cluster.js';
import { processInfo } from '../process-table.js';
import { type Identity, spawnServer } from '../spawn-server.js';
import { adopt, type Running, terminate } from '../supervisor.js';

/** SIGINT is Postgres' fast shutdown, SIGQUIT its immediate one (recovered at the next start). */
export const POSTGRES_STOP: [NodeJS.Signals, number][] = [
  ['SIGINT', 20_000],
  ['SIGQUIT', 5_000],
  ['SIGKILL', 5_000],
];

/** Milliseconds a postmaster that was just started, or says that it is recovering, may take to answer. */
const START_MS = 60_000;
const RECOVERY_MS = 600_000;
/** Milliseconds an adopted postmaster may stay silent. */
const ADOPT_MS = 10_000;

export interface PostmasterOptions {
  binaries: PostgresBinaries;
  identity: Identity | undefined;
  directory: string;
  password: string;
  logFile: string;
}

/** A connection string for the superuser. */
export function postgresUrl(password: string, port: number, database: string): string {
  return `postgres://${SUPERUSER}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;
}

/** Starts Postgres on the port; resolves when it answers. Nothing is left running when it rejects. */
export async function launchPostmaster(
  options: PostmasterOptions,
  port: number,
  signal: AbortSignal,
): Promise<Running> {
  await disownPidFile(options.directory);
  const running = await spawnServer({
    file: options.binaries.postgres,
    args: ['-D', options.directory, ...settings(port)],
    env: postgresEnvironment(),
    logFile: options.logFile,
    identity: options.identity,
  });
  try {
    await answers(postgresUrl(options.password, port, 'postgres'), running, START_MS, signal);
    return running;
  } catch (error) {
    await terminate(running, POSTGRES_STOP);
    const detail = await lastLines(options.logFile, 3);
    throw new Error(`${(error as Error).message}; the end of ${options.logFile}: ${detail}`, { cause: error });
  }
}

/**
 * The postmaster of this directory that an earlier process left running; undefined when there is none. One that does not answer
 * is stopped.
 * @throws Error when it refuses the stored password
 */
export async function adoptPostmaster(
  options: PostmasterOptions,
  onLine: (line: string) => void,
): Promise<{ running: Running; port: number } | undefined> {
  const file = await readPidFile(options.directory);
  if (!file || !(await isPostmaster(file))) return undefined;
  const running = await adopt(file.pid);
  if (!running) return undefined;
  try {
    await answers(
      postgresUrl(options.password, file.port, 'postgres'),
      running,
      ADOPT_MS,
      new AbortController().signal,
    );
    return { running, port: file.port };
  } catch (error) {
    if (error instanceof WrongPassword) throw error;
    onLine(`Postgres (process ${file.pid}) was left over and does not answer; stopping it`);
    await terminate(running, POSTGRES_STOP);
    return undefined;
  }
}

function settings(port: number): string[] {
  const values = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    max_connections: 200,
    shared_buffers: '128MB',
    max_wal_size: '512MB',
    synchronous_commit: 'on',
    // Messages of a busy minute leave a dead row each: vacuum looks for them four times as often as it would.
    autovacuum_naptime: '15s',
    password_encryption: 'scram-sha-256',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off',
    log_line_prefix: '%m [%p] ',
  };
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

class WrongPassword extends Error {}

/** Resolves when the server answers a query. While it says that it is starting up or recovering, it gets ten minutes. */
async function answers(url: string, running: Running, patienceMs: number, signal: AbortSignal): Promise<void> {
  let ended: string | undefined;
  void running.ended.then((reason) => {
    ended = reason;
  });
  const began = performance.now();
  for (;;) {
    const refusal = await ask(url);
    if (refusal === undefined) return;
    if (refusal.code === '28P01') throw new WrongPassword('Postgres refuses the password stored in postgres.json');
    if (ended !== undefined) throw new Error(`Postgres ended (${ended})`);
    signal.throwIfAborted();
    const waitedMs = performance.now() - began;
    if (waitedMs > (refusal.code === '57P03' ? RECOVERY_MS : patienceMs)) {
      throw new Error(`Postgres does not answer: ${refusal.message}`);
    }
    await sleep(40);
  }
}

async function ask(url: string): Promise<{ code?: string; message: string } | undefined> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000, query_timeout: 2_000 });
  let broken: Error | undefined;
  client.on('error', (error) => {
    broken = error;
  });
  try {
    await client.connect();
    await client.query('select 1');
    return broken;
  } catch (error) {
    return error as Error & { code?: string };
  } finally {
    await client.end().catch(() => undefined); // a connection that failed has nothing to end
  }
}

interface PidFile {
  pid: number;
  directory: string;
  port: number;
  rest: string[];
}

/** `postmaster.pid`: pid, data directory, start time, port, socket directory, address, shared memory, state; a line each. */
async function readPidFile(directory: string): Promise<PidFile | undefined> {
  const text = await readIfExists(join(directory, 'postmaster.pid'));
  const [pid, path, startedAt, port, ...rest] = text?.split('\n') ?? [];
  if (!pid || !path || !startedAt || !port || !/^\d+$/.test(pid) || !/^\d+$/.test(port)) return undefined;
  return { pid: Number(pid), directory: path, port: Number(port), rest: [path, startedAt, port, ...rest] };
}

async function isPostmaster(file: PidFile): Promise<boolean> {
  const info = await processInfo(file.pid);
  return info?.command.includes(`postgres -D ${file.directory} `) ?? false;
}

/**
 * Postgres refuses to start while the pid in its lock file exists, though it be a zombie or another program's by now. It passes over
 * its own parent's pid, and still checks that no orphan of the old postmaster holds the shared memory named in the file.
 */
async function disownPidFile(directory: string): Promise<void> {
  const path = join(directory, 'postmaster.pid');
  if ((await readIfExists(path)) === undefined) return;
  const file = await readPidFile(directory);
  if (!file) return rm(path, { force: true });
  if (await isPostmaster(file)) throw new Error(`Postgres (process ${file.pid}) already runs on ${directory}`);
  await writeFile(path, [process.pid, ...file.rest].join('\n'));
}
