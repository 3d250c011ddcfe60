import pg from 'pg';
import { FUNCTION_SCHEMA, migrate } from '../../db/migrate.js';
import { openDb } from '../../db/pool.js';
import { freePort } from '../../embedded/free-port.js';
import { userCacheDir } from '../../runtime/cache-dir.js';
import { createLogger } from '../../runtime/logger.js';
import { startPgvector } from '../../scripts/test/pgvector.mjs';
import { cleanUp } from './clean-up.js';
import { type FreshDatabase, queriesOf } from './database.js';

/** A migrated database on a Postgres with pgvector (`npm run test:pgvector`), for a whole test file. */
export async function pgvectorDatabase(): Promise<FreshDatabase> {
  const server = await startPgvector({ cacheDir: userCacheDir(), port: await freePort() });
  const { url } = server;
  let owner: pg.Pool | undefined;
  const db = openDb({ url, log: createLogger({ level: 'error' }) });
  const drop = async () => {
    await owner?.end();
    await db.close();
    await server.stop();
  };
  cleanUp(drop);
  await migrate(url, createLogger({ level: 'warn' }));
  owner = new pg.Pool({ connectionString: url, max: 2, options: `-c search_path=${FUNCTION_SCHEMA},public` });
  owner.on('error', () => undefined); // a connection that the server ends first when it is stopped
  return { url, ...queriesOf(owner), db: () => db, drop };
}
