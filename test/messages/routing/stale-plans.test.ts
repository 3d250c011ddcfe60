import { beforeEach, expect, test } from 'vitest';
import { openDb } from '../../../db/pool.js';
import { createLogger } from '../../../runtime/logger.js';
import { freshDatabase } from '../../setup/database.js';
import { MESH, RecordFixture } from '../../setup/record-fixture.js';
import { rowsRead } from '../../setup/rows-read.js';

const CALLS = 50;
/** Rows of agents that one call may read; a look at each agent of the tenant would read hundreds. */
const ROWS_MOST = 20;
const TAKE = `new_take_call(tenant_id => $1, instance_id => 'a', mesh_id => '${MESH}', epoch => 1, dispatch_ids => '{}', in_flight_limit => 1000)`;
const database = await freshDatabase();
const fixture = new RecordFixture(database);
beforeEach(() => fixture.reset());

/** Hundreds of agents of another type, before the one in the table. */
async function otherAgents(): Promise<void> {
  await database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, mesh_id, connection_epoch, max_concurrent_sessions)
     SELECT $1, 'other-' || n, 'other', 'connected', 'available', 'mesh_1', 1, 5 FROM generate_series(1, 500) AS n`,
    [fixture.tenantId],
  );
  await database.query("UPDATE agents SET last_seen = now() WHERE tenant_id = $1 AND instance_id = 'a'", [
    fixture.tenantId,
  ]);
}

/** Calls a function with one agent until its plans are kept, and again with hundreds. @returns how many rows of agents it read for each call */
async function agentsRead(query: string, values: string[]): Promise<number> {
  const read = await rowsRead(database, /^agents$/, async () => {
    const db = openDb({ url: database.url, max: 1, log: createLogger({ level: 'silent' }) });
    const callOften = async () => {
      for (let call = 0; call < CALLS; call += 1) await db.tenant(fixture.tenantId, (tx) => tx.query(query, values));
    };
    await callOften();
    await otherAgents();
    await callOften();
    await db.close();
  });
  return read / CALLS / 2;
}

test.each([
  ["SELECT is_online($1, '/worker/')", 'busy'],
  ["SELECT is_online($1, 'a//')", 'available'],
  [`SELECT agents_to_fill($1, '/worker/')`, 'available'],
  [`SELECT agents_to_fill($1, 'a//')`, 'available'],
  [`SELECT take_messages(to_jsonb(${TAKE}))`, 'busy'],
  ["SELECT choose_routable($1, NULL, 'worker')", 'busy'],
  ["SELECT choose_routable($1, 'a', NULL)", 'busy'],
  ['SELECT route_wait($1, $2, now(), 1)', 'busy'],
])('%s, whose plans were made with one agent, looks at few of hundreds', async (query, status) => {
  await database.query('DELETE FROM agents');
  await database.query('VACUUM FULL ANALYZE agents');
  await fixture.agent('a', { status });
  const { message_id } = await fixture.send({ agent_type: 'worker' });
  const values = [fixture.tenantId, ...(query.includes('$2') ? [message_id] : [])];
  expect(await agentsRead(query, values)).toBeLessThan(ROWS_MOST);
});
