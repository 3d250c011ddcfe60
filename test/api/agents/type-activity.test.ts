import { expect, test } from 'vitest';
import { countOutcome } from '../../../agents/agent-health.js';
import { AgentsGetResponse, AgentTypesResponse } from '../../../contracts/api/agents.js';
import { newId } from '../../../runtime/ids.js';
import { setSocket } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();
const register = (instance_id: string, agent_type: string, fields: object = {}) =>
  api.client.post('/agents/register', { instance_id, agent_type, ...fields });
const types = async () => (await api.client.ok('/agents/get_types', {}, AgentTypesResponse.strict())).agent_types;
/** A message that waits in a queue, or that an instance has. */
const running = (agent_type: string | null, at: { queue: string } | { instance_id: string }) =>
  api.database.query(
    `INSERT INTO running_messages (tenant_id, message_id, session_id, state, agent_type, queue, instance_id, holds_slot)
     VALUES ($1, $2, 'ses_1', 'submitted', $3, $4, $5::text, $5::text IS NOT NULL)`,
    [
      ...[api.tenantId, newId('msg'), agent_type],
      ...['queue' in at ? at.queue : null, 'instance_id' in at ? at.instance_id : null],
    ],
  );
const failed = (agent_type: string, error_code: string, minutesAgo = 1) =>
  api.database.query(
    `INSERT INTO messages (deadline_ms, tenant_id, message_id, session_id, credential_id, client_message_id, method, parts, state,
       unsuccessful_state, agent_type, instance_id, error_code, completed_at)
     SELECT 1, $1, id_bound('msg', at) || right($2, 23), 'ses_1', 'cred_1', 'c', 'message/send', '[]', 'failed', 'failed', $3, 'i', $4, at
       FROM (SELECT now() - $5 * interval '1 minute' AS at) moment`,
    [api.tenantId, newId('msg'), agent_type, error_code, minutesAgo],
  );
const NOTHING = {
  ...{ instances: 0, online: 0, draining: 0, unhealthy: 0, in_flight: 0, max_concurrent_sessions: 0 },
  ...{ queue_length: 0, failed_last_hour: 0, failing: 0 },
};

test('each type shows its instances together, what waits for it, and since when it fails', async () => {
  for (const name of ['p1', 'p2', 'p3', 'gone']) await register(name, 'pricing', { max_concurrent_sessions: 8 });
  await register('w1', 'writer', { max_concurrent_sessions: 0 });
  for (const name of ['p1', 'p2', 'w1']) await setSocket(api, name);
  await api.client.post('/agents/drain', { instance_id: 'p2' });
  await api.client.post('/agents/deregister', { instance_id: 'gone' });
  await running('pricing', { instance_id: 'p1' });
  for (const queue of ['p1//', '/pricing/', '/pricing/quote', '/absent/', '//any-skill'])
    await running(null, { queue });
  for (const code of ['HANDLER_ERROR', 'GUARD_DENIED']) await failed('pricing', code);
  await failed('pricing', 'HANDLER_ERROR', 70);
  for (let nth = 0; nth < 5; nth += 1)
    await countOutcome(api.db, { tenant_id: api.tenantId, instance_id: 'p1' }, 'OUT_OF_PAPER');
  expect(await types()).toEqual([
    { agent_type: 'absent', ...NOTHING, queue_length: 1, queued_since: expect.any(String) },
    {
      ...{ agent_type: 'pricing', ...NOTHING, instances: 3, online: 2, draining: 1, max_concurrent_sessions: 16 },
      ...{ in_flight: 1, queue_length: 3, queued_since: expect.any(String) },
      ...{ failed_last_hour: 1, last_error: 'HANDLER_ERROR', failing: 1, failing_since: expect.any(String) },
    },
    { agent_type: 'writer', ...NOTHING, instances: 1, online: 1, max_concurrent_sessions: null },
  ]);
});

test('agents that left can be left out of the list, or be the list', async () => {
  const named = async (registered?: boolean) => {
    const { agents } = await api.client.ok('/agents/get', { agent_type: 'pricing', registered }, AgentsGetResponse);
    return agents.map(({ instance_id }) => instance_id).sort();
  };
  expect(await named()).toEqual(['gone', 'p1', 'p2', 'p3']);
  expect(await named(true)).toEqual(['p1', 'p2', 'p3']);
  expect(await named(false)).toEqual(['gone']);
});

test('another tenant sees none of it', async () => {
  const other = await api.clientOf(await api.otherTenant(), ['read']);
  expect((await other.ok('/agents/get_types', {}, AgentTypesResponse)).agent_types).toEqual([]);
});
