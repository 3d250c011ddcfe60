import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GetPoliciesResponse } from '../../contracts/api/policies/policies.js';
import { joinOnRecord } from '../api/moving.js';
import { type ServedApi, serveApi } from '../api/served-api.js';
import { insertAgent } from '../setup/core.js';
import type { SendOptions } from '../setup/platform/api-client.js';
import { type NewPolicy, policyFor } from './policy-fixture.js';

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi();
  await joinOnRecord(api, 'worker-1');
  const agent = { tenant_id: api.tenantId, mesh_id: 'mesh_test', connection_epoch: 1 };
  await insertAgent(api.database, { ...agent, instance_id: 'coder-1', agent_type: 'coder' });
  await api.database.query(`UPDATE agents SET skills = '[{"id": "code"}]' WHERE instance_id = 'coder-1'`);
});
afterEach(async () => {
  const { policies } = await api.client.ok('/policies/get_policies', { page_size: 100 }, GetPoliciesResponse);
  for (const { policy_id } of policies) await api.client.post('/policies/delete_policy', { policy_id });
});

const deny = (policy: Partial<NewPolicy> = {}) =>
  policyFor(api.client, { scope: 'session', decision: 'deny', match: { agent_types: ['coder'] }, ...policy });
/** The status of a message to `/send`. */
const sent = async (options: SendOptions) => (await api.client.rpc('hello', { blocking: false, ...options })).status;
const sessions = async () => (await api.database.query('SELECT session_id FROM sessions')).length;
const events = () =>
  api.database.query<{ event_type: string; payload: object; session_id: string }>(
    "SELECT event_type, payload, session_id FROM events WHERE category = 'policy' ORDER BY event_id",
  );

describe('a policy that denies sessions with an agent type denies the sessions that messages open', () => {
  test.each<[string, SendOptions]>([
    ['to the type', { metadata: { agent_type: 'coder' } }],
    ['to an instance of the type', { metadata: { instance_id: 'coder-1' } }],
    ['to a skill of the type', { metadata: { skill_id: 'code' } }],
    ['in a new context', { contextId: 'my-context', metadata: { agent_type: 'coder' } }],
  ])('%s', async (_what, options) => {
    const { policy_id } = await deny({ name: _what });
    const before = await sessions();
    expect(await sent(options)).toBe(403);
    expect(await sessions()).toBe(before);
    const payload = { policy_id, policy_name: _what, action: 'init', tool: null };
    expect((await events()).at(-1)).toMatchObject({ event_type: 'policy.denied', payload });
    expect(await sent({ metadata: { agent_type: 'worker' } })).toBe(200);
  });

  test('to the default type', async () => {
    await deny();
    await api.client.post('/agents/set_default', { agent_type: 'coder' });
    expect(await sent({})).toBe(403);
    await api.client.post('/agents/set_default', { agent_type: 'worker' });
    expect(await sent({})).toBe(200);
  });
});

test('what asks for an approval refuses the session, which cannot wait', async () => {
  await deny({ decision: 'require_approval' });
  expect(await sent({ metadata: { agent_type: 'coder' } })).toBe(403);
});

test('messages in sessions that are open, and repeats of messages that were accepted, are not asked about', async () => {
  const options = { messageId: randomUUID(), metadata: { agent_type: 'coder' }, blocking: false };
  const task = await api.client.send('hello', options);
  await deny();
  expect((await api.client.send('hello', options)).id).toBe(task.id);
  expect(await sent({ contextId: task.contextId })).toBe(200);
});

test('a session that is only recorded has its event with the message that opens it', async () => {
  await deny({ decision: 'audit', match: {} });
  const audited = async (options: SendOptions) => {
    const { contextId } = await api.client.send('hello', { ...options, blocking: false });
    return (await events()).filter(({ session_id }) => session_id === contextId);
  };
  const event = { event_type: 'policy.audited', payload: { action: 'init' } };
  expect(await audited({ metadata: { agent_type: 'coder' } })).toMatchObject([event]);
  expect(await audited({ contextId: 'another-context', metadata: { agent_type: 'coder' } })).toMatchObject([event]);
});
