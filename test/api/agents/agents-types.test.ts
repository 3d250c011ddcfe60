import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  AgentGetByIdResponse,
  AgentRegisterResponse,
  AllowTypeResponse,
  DisallowTypeResponse,
} from '../../../contracts/api/agents.js';
import { SessionGetByIdResponse, SessionInitResponse } from '../../../contracts/api/sessions.js';
import { GetEventsResponse } from '../../../contracts/api/telemetry.js';
import type { ApiClient } from '../../setup/platform/api-client.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();

/** A tenant of the test's own: a list holds for all of its tenant. */
async function tenant(): Promise<{ id: string; client: ApiClient }> {
  const id = await api.otherTenant();
  return { id, client: await api.clientOf(id, ['full']) };
}
const register = (client: ApiClient, agent_type: string, instance_id = `inst-${randomUUID()}`) =>
  client.ok('/agents/register', { agent_type, instance_id }, AgentRegisterResponse.strict());
const refused = (client: ApiClient, agent_type: string) => client.failure('/agents/register', { agent_type });
const allow = (client: ApiClient, agent_type: string) =>
  client.ok('/agents/allow_type', { agent_type }, AllowTypeResponse.strict());
const disallow = (client: ApiClient, agent_type: string) =>
  client.ok('/agents/disallow_type', { agent_type }, DisallowTypeResponse.strict());

test('without a list every type may join; the first type allowed makes one', async () => {
  const { client } = await tenant();
  const early = await register(client, 'early');
  await register(client, 'painter');
  expect(await allow(client, 'painter')).toEqual({ ok: true, agent_type: 'painter', was_new: true });
  expect(await allow(client, 'painter')).toEqual({ ok: true, agent_type: 'painter', was_new: false });
  await register(client, 'painter');
  expect(await refused(client, 'plumber')).toBe('403 forbidden');
  expect(await refused(client, 'early')).toBe('403 forbidden');
  // Who is there already stays.
  const { instance_id } = early;
  expect((await client.post('/agents/heartbeat', { instance_id })).status).toBe(200);
  expect((await allow(client, 'plumber')).was_new).toBe(true);
  await register(client, 'plumber');
  // A list is its tenant's own.
  await register((await tenant()).client, 'gardener');
});

test('a type that is disallowed is kept out, its instances are deregistered and their sessions unbound', async () => {
  const { id, client } = await tenant();
  const [one, two] = [await register(client, 'painter', 'one'), await register(client, 'painter', 'two')];
  const other = await register(client, 'plumber', 'other');
  await register(client, 'painter', 'gone');
  await client.post('/agents/deregister', { instance_id: 'gone' });
  await api.database.query(`UPDATE agents SET mesh_id = 'mesh_1', status = 'available' WHERE tenant_id = $1`, [id]);
  const { session_id } = await client.ok('/sessions/init', { instance_id: 'one' }, SessionInitResponse);

  const answer = { ok: true, agent_type: 'painter', removed_from_policy: false };
  expect(await disallow(client, 'painter')).toEqual({ ...answer, deregistered_count: 2 });
  expect(await disallow(client, 'painter')).toEqual({ ...answer, deregistered_count: 0 });
  for (const { instance_id } of [one, two]) {
    const { agent } = await client.ok('/agents/get_by_id', { instance_id }, AgentGetByIdResponse);
    expect(agent).toMatchObject({ status: 'offline', current_sessions: 0 });
    expect(await client.failure('/agents/heartbeat', { instance_id })).toBe('404 DEREGISTERED');
  }
  const { instance_id } = other;
  expect((await client.ok('/agents/get_by_id', { instance_id }, AgentGetByIdResponse)).agent.status).toBe('available');
  expect((await client.ok('/sessions/get_by_id', { session_id }, SessionGetByIdResponse)).session.status).toBe(
    'active',
  );
  const events = await client.ok('/telemetry/get_events', { type: 'agent.deregistered' }, GetEventsResponse);
  expect(events.events.map(({ event }) => event.reason)).toEqual([
    'the agent type was disallowed',
    'the agent type was disallowed',
    'deregistered by the caller',
  ]);

  expect(await refused(client, 'painter')).toBe('403 forbidden');
  await register(client, 'plumber');
  await register(client, 'gardener');
});

test('a type is taken off the list; the last one leaves none, and allowing it makes the list again', async () => {
  const { client } = await tenant();
  await allow(client, 'painter');
  await allow(client, 'plumber');
  expect(await disallow(client, 'plumber')).toMatchObject({ removed_from_policy: true, deregistered_count: 0 });
  expect(await disallow(client, 'plumber')).toMatchObject({ removed_from_policy: false });
  expect(await refused(client, 'plumber')).toBe('403 forbidden');
  expect(await refused(client, 'gardener')).toBe('403 forbidden');
  expect(await disallow(client, 'painter')).toMatchObject({ removed_from_policy: true });
  expect(await refused(client, 'painter')).toBe('403 forbidden');
  await register(client, 'gardener');
  expect(await allow(client, 'painter')).toMatchObject({ was_new: true });
  await register(client, 'painter');
  expect(await refused(client, 'gardener')).toBe('403 forbidden');
});

test('nothing is fetched for a hosted agent that may not join', async () => {
  const { client } = await tenant();
  await disallow(client, 'painter');
  const body = { agent_type: 'painter', public_url: 'http://127.0.0.1:1/' };
  expect(await client.failure('/agents/register', body)).toBe('403 forbidden');
});

test('an instance cannot slip to a type that may not join, nor in while its type is being disallowed', async () => {
  const { id, client } = await tenant();
  await disallow(client, 'painter');
  await register(client, 'plumber', 'changing');
  const body = { instance_id: 'changing', agent_type: 'painter' };
  expect(await client.failure('/agents/register', body)).toBe('403 forbidden');

  const names = Array.from({ length: 12 }, (_, index) => `racing-${index}`);
  const joining = names.map((name) => client.post('/agents/register', { instance_id: name, agent_type: 'racer' }));
  await disallow(client, 'racer');
  await Promise.all(joining);
  const left = await api.database.query(
    `SELECT instance_id FROM agents WHERE tenant_id = $1 AND agent_type = 'racer' AND deregistered_at IS NULL`,
    [id],
  );
  expect(left).toEqual([]);
});

test.each(['/agents/allow_type', '/agents/disallow_type'])('%s takes a type that agents can be of', async (path) => {
  const { client } = await tenant();
  for (const agent_type of [undefined, '', 'credential', 'a b'])
    expect(await client.failure(path, { agent_type })).toBe('400 BAD_REQUEST');
});
