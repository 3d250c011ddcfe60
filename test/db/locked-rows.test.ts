import { expect, test } from 'vitest';
import { touchConnections } from '../../mesh/connection/connection-rows.js';
import { newId } from '../../runtime/ids.js';
import { insertAgent, insertTenant, messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { RowLock } from '../setup/row-lock.js';

const database = await freshDatabase();
const core = messageCore(database.db());
const [locked, free] = [await insertTenant(database), await insertTenant(database)];

test('signs of life of agents: rows that a request of one tenant has locked are passed over', async () => {
  const agents = [locked, free].map((tenant_id) => ({ tenant_id, instance_id: newId('msg'), epoch: 0 }));
  for (const { epoch, ...agent } of agents) await insertAgent(database, agent);
  const run = () => core.db.system((tx) => touchConnections(tx, agents));
  const lock = await RowLock.on(database.url, 'SELECT 1 FROM agents WHERE tenant_id = $1', [locked]);
  await run();
  const seen = 'SELECT 1 FROM agents WHERE tenant_id = $1 AND last_seen IS NOT NULL';
  const changed = async (tenant: string) => (await database.query(seen, [tenant])).length;
  expect([await changed(locked), await changed(free)]).toEqual([0, 1]);
  await lock.release();
  await run();
  expect([await changed(locked), await changed(free)]).toEqual([1, 1]);
});
