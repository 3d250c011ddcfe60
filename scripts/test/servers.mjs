import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * The Postgres and the Temporal server of a run, from a built `dist/`; those at `TEST_DATABASE_URL` and `TEST_TEMPORAL_ADDRESS` where they are set.
 * @param {string} root the checkout
 * @param {string} folder what the servers keep; the caller removes it
 * @returns {Promise<{ postgresUrl: string, temporalAddress: string, stop(): Promise<void> }>}
 */
export async function startServers(root, folder) {
  const load = (path) => import(pathToFileURL(join(root, 'dist', path)).href);
  const [{ startPostgres }, { startTemporal }, { createLogger }] = await Promise.all(
    ['embedded/postgres.js', 'embedded/temporal.js', 'runtime/logger.js'].map(load),
  );
  const log = createLogger({ level: 'warn' });
  const onLine = (line) => process.stderr.write(`[test] ${line}\n`);
  const stops = [];
  const own = (name) => {
    const dataDir = join(folder, name);
    mkdirSync(dataDir, { recursive: true, mode: 0o755 });
    return { dataDir, log, onLine };
  };
  const postgres = async () => {
    if (process.env.TEST_DATABASE_URL) return process.env.TEST_DATABASE_URL;
    const server = await startPostgres(own('postgres-data'));
    stops.push(() => stopAtOnce(server, 'SIGQUIT'));
    await commitWithoutDisk(server.url);
    return server.url;
  };
  const temporal = async () => {
    if (process.env.TEST_TEMPORAL_ADDRESS) return process.env.TEST_TEMPORAL_ADDRESS;
    const server = await startTemporal(own('temporal-data'));
    stops.push(() => stopAtOnce(server, 'SIGKILL'));
    return server.address;
  };
  const stop = async () => {
    await Promise.all(stops.map((stopOne) => stopOne()));
  };
  chmodSync(folder, 0o755); // as root, Postgres runs as another user
  const [postgresUrl, temporalAddress] = await Promise.all([postgres(), temporal()]).catch(async (error) => {
    await stop();
    throw error;
  });
  return { postgresUrl, temporalAddress, stop };
}

/** The server of a run never has to survive a crash; tests that kill a Postgres bring their own. */
async function commitWithoutDisk(url) {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const name of ['synchronous_commit', 'fsync', 'full_page_writes'])
      await client.query(`ALTER SYSTEM SET ${name} = off`);
    await client.query('SELECT pg_reload_conf()');
  } finally {
    await client.end();
  }
}

/** What a server still would write before it ends, which takes a minute after a whole run, is removed anyway. */
async function stopAtOnce(server, signal) {
  const stopped = server.stop();
  process.kill(server.pid, signal);
  await stopped;
}
