import { expect, test } from 'vitest';
import { PlanResponse } from '../../contracts/api/plans.js';
import type { Scope } from '../../contracts/primitives.js';
import { joinOnRecord } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');

async function planOf(scope: Scope) {
  const client = await api.clientOf(api.tenantId, [scope]);
  const { contextId: session_id } = await client.send('hi', { metadata: { agent_type: 'worker' }, blocking: false });
  const steps = [{ description: 'look', message: 'look', agent_type: 'worker' }];
  return { client, body: { session_id, description: 'a plan', steps, auto_approve: true } };
}

test('a plan is approved at once only by somebody who may approve it', async () => {
  const { client, body } = await planOf('read');
  expect(await client.failure('/plans/create', body)).toBe('403 forbidden');
  expect(await api.database.query('SELECT 1 FROM plans WHERE session_id = $1', [body.session_id])).toEqual([]);
  const admin = await planOf('admin');
  const { plan } = await admin.client.ok('/plans/create', admin.body, PlanResponse);
  expect(plan).toMatchObject({ state: 'running', decisions: [{ resolution: 'approved' }] });
});
