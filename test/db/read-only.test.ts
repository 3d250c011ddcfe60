import { expect, test } from 'vitest';
import { openDb } from '../../db/pool.js';
import { createHealth } from '../../platform/health.js';
import { DEFAULT_CLOCKS } from '../../runtime/clocks.js';
import { createLogger } from '../../runtime/logger.js';
import { cleanUp } from '../setup/clean-up.js';
import { freshDatabase } from '../setup/database.js';

const database = await freshDatabase();

test('a server that only reads, as a primary that was demoted, is an absent one: work is repeated, and health says so', async () => {
  const log = createLogger({ level: 'silent' });
  const name = new URL(database.url).pathname.slice(1);
  const openAnew = () => {
    const db = openDb({ url: database.url, log });
    cleanUp(() => db.close());
    return db;
  };
  const health = (db: ReturnType<typeof openAnew>) =>
    createHealth({
      db,
      temporal: async () => true,
      version: '',
      redis: null,
      clocks: DEFAULT_CLOCKS,
      stopping: new AbortController().signal,
    })();
  expect((await health(openAnew())).checks.database).toBe('ok');
  await database.query(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`);
  const db = openAnew();
  const write = db.system((tx) => tx.query("INSERT INTO platform_facts (name, value) VALUES ('written', 'yes')"));
  await expect(write).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect((await health(db)).checks.database).toBe('down');
});
