import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { readIfExists } from '../atomic-file.js';
import { lastLines } from '../log-file.js';
import { processInfo } from '../process-table.js';
import { type Identity, spawnServer } from '../spawn-server.js';
import { adopt, type Running, terminate } from '../supervisor.js';
import type { PostgresBinaries } from './binaries.js';
import { postgresEnvironment, SUPERUSER } from './cluster.js';

/** SIGINT is the fast shutdown of Postgres; SIGQUIT the immediate one, with recovery at the next start. */
export const POSTGRES_STOP: [NodeJS.Signals, number][] = [
  ['SIGINT', 20_000],
  ['SIGQUIT', 5_000],
  ['SIGKILL', 5_000],
];

/** Time limits for a started postmaster to answer, and for one that reports recovery. */
const START_MS = 60_000;
const RECOVERY_MS = 600_000;
/** Time limit for an adopted postmaster to answer. */
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

/** Starts Postgres on the port; resolves when it answers. Stops it before it rejects. */
export async function launchPostmaster(
  options: PostmasterOptions,
  port: number,
  signal: AbortSignal,
): Promise<Running> {
  await rewritePidFile(options.directory);
  const running = await spawnServer({
    file: options.binaries.postgres,
    args: ['-D', options.directory, ...settings(port)],
    env: postgresEnvironment(),
    logFile: options.logFile,
    identity: options.identity,
  });
  try {
    await waitUntilReady(postgresUrl(options.password, port, 'postgres'), running, START_MS, signal);
    return running;
  } catch (error) {
    await terminate(running, POSTGRES_STOP);
    const detail = await lastLines(options.logFile, 3);
    throw new Error(`${(error as Error).message}; the end of ${options.logFile}: ${detail}`, { cause: error });
  }
}

/**
 * Adopts the postmaster of this directory that an earlier process left running; undefined without one. Stops one that does not answer.
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
    await waitUntilReady(
      postgresUrl(options.password, file.port, 'postgres'),
      running,
      ADOPT_MS,
      new AbortController().signal,
    );
    return { running, port: file.port };
  } catch (error) {
    if (error instanceof WrongPassword) throw error;
    onLine(`Postgres (process ${file.pid}) is left over from an earlier run and does not answer; stopping it`);
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
    // Every message leaves dead rows: vacuum runs four times as often as by default.
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

/** Resolves when the server answers a query. A server that reports start-up or recovery gets ten minutes. */
async function waitUntilReady(url: string, running: Running, timeoutMs: number, signal: AbortSignal): Promise<void> {
  let ended: string | undefined;
  void running.ended.then((reason) => {
    ended = reason;
  });
  const began = performance.now();
  for (;;) {
    const refusal = await tryQuery(url);
    if (refusal === undefined) return;
    if (refusal.code === '28P01') throw new WrongPassword('Postgres refuses the password stored in postgres.json');
    if (ended !== undefined) throw new Error(`Postgres ended (${ended})`);
    signal.throwIfAborted();
    const waitedMs = performance.now() - began;
    if (waitedMs > (refusal.code === '57P03' ? RECOVERY_MS : timeoutMs)) {
      throw new Error(`Postgres does not answer: ${refusal.message}`);
    }
    await sleep(40);
  }
}

async function tryQuery(url: string): Promise<{ code?: string; message: string } | undefined> {
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
    await client.end().catch(() => undefined); // a failed connection needs no clean end
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
 * Replaces the pid in `postmaster.pid` with our own. Postgres refuses to start while the pid in the file exists, even if it is a zombie or
 * belongs to another program by now. It ignores the pid of its parent, and still checks that no orphan of the old postmaster uses the
 * shared memory named in the file.
 */
async function rewritePidFile(directory: string): Promise<void> {
  const path = join(directory, 'postmaster.pid');
  if ((await readIfExists(path)) === undefined) return;
  const file = await readPidFile(directory);
  if (!file) return rm(path, { force: true });
  if (await isPostmaster(file)) throw new Error(`Postgres (process ${file.pid}) already runs on ${directory}`);
  await writeFile(path, [process.pid, ...file.rest].join('\n'));
}
