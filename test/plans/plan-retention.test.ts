import { expect, test } from 'vitest';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';

test('plans that ended before a time are deleted with all that belongs to them; younger and open ones stay', async () => {
  const database = await freshDatabase();
  const tenant_id = await insertTenant(database);
  const insert = (plan_id: string, state: string, daysAgo: number | null) =>
    database.query(
      `INSERT INTO plans (tenant_id, plan_id, session_id, description, state, max_parallel, auto_approve, credential_id, created_by, agent_type,
         scopes, trace_id, ended_at)
       VALUES ($1, $2, 's', 'd', $3, 1, true, 'c', 'c', 'credential', '{read}', 't', now() - $4 * interval '1 day')`,
      [tenant_id, plan_id, state, daysAgo],
    );
  await insert('plan_1', 'completed', 40);
  await insert('plan_2', 'failed', 10);
  await insert('plan_3', 'running', null);
  for (const plan of ['plan_1', 'plan_2', 'plan_3']) {
    await database.query(
      `INSERT INTO plan_steps (tenant_id, plan_id, place, step_id, description, parts, depends_on, requires_approval, max_attempts)
       VALUES ($1, $2, 0, 'a', 'd', '[]', '{}', false, 1)`,
      [tenant_id, plan],
    );
    await database.query('INSERT INTO plan_wakes (tenant_id, plan_id) VALUES ($1, $2)', [tenant_id, plan]);
  }
  let key = ['', ''];
  for (let turns = 0; key.length > 0 && turns < 10; turns += 1) {
    const [row] = await database.query<{ last_tenant: string; last_plan: string }>(
      "SELECT * FROM purge_plans(now() - interval '30 days', $1, $2, 2)",
      key,
    );
    key = row ? [row.last_tenant, row.last_plan] : [];
  }
  for (const table of ['plans', 'plan_steps', 'plan_wakes'])
    expect(await database.column(`SELECT plan_id FROM ${table} ORDER BY plan_id`), table).toEqual(['plan_2', 'plan_3']);
});
