import { expect, test } from 'vitest';
import { touchConnections } from '../../mesh/connection/connection-rows.js';
import { newId } from '../../runtime/ids.js';
import { insertAgent, insertTenant, messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { RowLock } from '../setup/row-lock.js';

const database = await freshDatabase();
const core = messageCore(database.db());
const [locked, free] = [await insertTenant(database), await insertTenant(database)];

/** Statements over rows of several tenants: what they look at, and which rows they have changed since. */
const STATEMENTS: { what: string; table: string; changed: string; prepare: () => Promise<() => Promise<void>> }[] = [
  {
    what: 'signs of life of agents',
    table: 'agents',
    changed: 'last_seen IS NOT NULL',
    prepare: async () => {
      const agents = [locked, free].map((tenant_id) => ({ tenant_id, instance_id: newId('msg'), epoch: 0 }));
      for (const { epoch, ...agent } of agents) await insertAgent(database, agent);
      return () => core.db.system((tx) => touchConnections(tx, agents));
    },
  },
];

test.each(STATEMENTS)('$what: rows that a request of one tenant has locked are passed over', async (statement) => {
  const run = await statement.prepare();
  const lock = await RowLock.on(database.url, `SELECT 1 FROM ${statement.table} WHERE tenant_id = $1`, [locked]);
  await run();
  const changed = async (tenant: string) => {
    const rows = `SELECT 1 FROM ${statement.table} WHERE tenant_id = $1 AND ${statement.changed}`;
    return (await database.query(rows, [tenant])).length;
  };
  expect([await changed(locked), await changed(free)]).toEqual([0, 1]);
  await lock.release();
  await run();
  expect([await changed(locked), await changed(free)]).toEqual([1, 1]);
});
