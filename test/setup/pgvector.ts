import { migrate } from '../../db/migrate.js';
import { freePort } from '../../embedded/free-port.js';
import { userCacheDir } from '../../runtime/cache-dir.js';
import { createLogger } from '../../runtime/logger.js';
import { startPgvector } from '../../scripts/test/pgvector.mjs';
import { cleanUp } from './clean-up.js';
import { databaseAt, type FreshDatabase } from './database.js';

/** A migrated database on a Postgres with pgvector (`npm run test:pgvector`), for a whole test file. */
export async function pgvectorDatabase(): Promise<FreshDatabase> {
  const server = await startPgvector({ cacheDir: userCacheDir(), port: await freePort() });
  const database = databaseAt(server.url, () => server.stop());
  cleanUp(database.drop);
  await migrate(server.url, createLogger({ level: 'warn' }));
  return database;
}
