import { expect, test } from 'vitest';
import { insertAgent, insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';

const DEREGISTERED = 5_000;
const database = await freshDatabase();
const TENANT = await insertTenant(database);
await database.query(
  `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, max_concurrent_sessions, deregistered_at)
   SELECT $1, 'gone-' || n, 'x', 'connected', 'offline', 1, now() FROM generate_series(1, $2::int) n`,
  [TENANT, DEREGISTERED],
);
await insertAgent(database, { tenant_id: TENANT, instance_id: 'here', agent_type: 'x', max_concurrent_sessions: 1 });
await database.query('ANALYZE agents');

/** Pages that a call reads, on a plan such as the accept transaction has. */
async function pagesRead(call: string): Promise<number> {
  return database.db().tenant(TENANT, async (tx) => {
    await tx.query('SET LOCAL enable_seqscan = off');
    await tx.query('SET LOCAL enable_bitmapscan = off');
    await tx.query('SET LOCAL plan_cache_mode = force_generic_plan');
    await tx.query(`SELECT ${call}`);
    const [row] = await tx.query<{ 'QUERY PLAN': [{ Plan: { 'Shared Hit Blocks': number } }] }>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT ${call}`,
    );
    return row?.['QUERY PLAN'][0].Plan['Shared Hit Blocks'] ?? Number.NaN;
  });
}

test.each([
  ['the default target', `default_target('${TENANT}')`],
  ['whether a type is registered', `target_registered('${TENANT}', NULL, 'x', NULL)`],
  ['whether a skill is registered', `target_registered('${TENANT}', NULL, 'x', 'none')`],
])('%s costs the same however many agents were deregistered', async (_, call) => {
  expect(await pagesRead(call)).toBeLessThan(50);
});
