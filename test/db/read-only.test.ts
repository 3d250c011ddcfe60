import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createCredential, verifySecret } from '../../auth/credentials.js';
import { openDb } from '../../db/pool.js';
import { createHealth } from '../../platform/health.js';
import { DEFAULT_CLOCKS } from '../../runtime/clocks.js';
import { createLogger } from '../../runtime/logger.js';
import { createSecrets } from '../../runtime/secrets.js';
import { testAuthor } from '../setup/author.js';
import { cleanUp } from '../setup/clean-up.js';
import { insertTenant } from '../setup/core.js';
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
  const { signal: stopping } = new AbortController();
  const others = { temporal: async () => true, version: '', redis: null, clocks: DEFAULT_CLOCKS, stopping };
  const health = (db: ReturnType<typeof openAnew>) => createHealth({ db, ...others })();
  expect((await health(openAnew())).checks.database).toBe('ok');
  const [secrets, tenant] = [createSecrets(randomBytes(32).toString('base64')), await insertTenant(database)];
  const made = { name: 'n', scopes: ['read' as const] };
  const { credential, client_secret } = await database
    .db()
    .system((tx) => createCredential(tx, secrets, testAuthor(tenant), made));
  await database.query(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`);
  const db = openAnew();
  const write = db.system((tx) => tx.query("INSERT INTO platform_facts (name, value) VALUES ('written', 'yes')"));
  await expect(write).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect((await health(db)).checks.database).toBe('down');
  const { client_id } = credential;
  expect(await verifySecret(db, secrets, { client_id, client_secret }), 'a right secret passes').not.toBeNull();
});
