import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../../runtime/ids.js';
import { type FreshDatabase, freshDatabase } from '../setup/database.js';

const TENANT = newId('ten');
const DEREGISTERED = 5_000;
let database: FreshDatabase;

beforeAll(async () => {
  database = await freshDatabase();
  await database.query(`INSERT INTO tenants (tenant_id, name) VALUES ($1, 'test')`, [TENANT]);
  const agents = `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, max_concurrent_sessions, deregistered_at)`;
  await database.query(
    `${agents} SELECT $1, 'gone-' || n, 'x', 'connected', 'offline', 1, now() FROM generate_series(1, $2::int) n`,
    [TENANT, DEREGISTERED],
  );
  await database.query(`${agents} VALUES ($1, 'here', 'x', 'connected', 'available', 1, NULL)`, [TENANT]);
  await database.query('ANALYZE agents');
});
afterAll(() => database.drop());

/** Pages that a call reads, on a plan such as T1 has. */
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
