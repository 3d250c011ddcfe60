import { expect, test } from 'vitest';
import { MessagesGetResponse } from '../../../contracts/api/messages.js';
import { GetEventsResponse, TracesResponse } from '../../../contracts/api/telemetry.js';
import { rowsRead, vacuumed } from '../../setup/rows-read.js';
import { serveApi } from '../served-api.js';

const MANY = 20_000;
/** Rows of a page and of its content; a list that walks through others reads thousands. */
const ROWS_MOST = 150;
const CONTEXT = 'default';
const api = await serveApi();

/** Groups with these events of one instance in a session, the oldest first. */
async function addGroups(tenantId: string, count: number, types: string[], instance = 'other-1'): Promise<void> {
  await api.database.query(
    `INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, dispatch_id, types, instance_mark, events)
     SELECT uuid_of($1), ('01000000' || lpad(n || '00', 24, '0'))::uuid, session_uuid(uuid_of($1), $2), $2, gen_random_uuid(), event_bits($4),
            instance_mark($5), (SELECT json_agg(json_build_object('instance_id', $5::text)) FROM unnest($4::text[]))
       FROM generate_series(1, $3::int) n`,
    [tenantId, CONTEXT, count, types, instance],
  );
  await vacuumed(api.database, 'event_groups');
}

async function eventsOf(tenantId: string) {
  const client = await api.clientOf(tenantId, ['read']);
  await client.token();
  return (body: object) => client.ok('/telemetry/get_events', body, GetEventsResponse.strict());
}

const typesOf = ({ events }: { events: { event_type: string }[] }) => events.map(({ event_type }) => event_type);

test('a tenant reads nothing of another one that uses the same context name', async () => {
  const [large, small] = [await api.otherTenant(), await api.otherTenant()];
  await addGroups(large, MANY, ['dispatch.sent']);
  await addGroups(small, 3, ['dispatch.success']);
  await api.database.query(
    `INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, state, method, parts, deadline_ms)
     SELECT t.tenant_id, 'msg_01' || n, $3, session_uuid(uuid_of(t.tenant_id), $3), 'c', 'm' || n, 'completed', 'message/send', '[]', 1
       FROM (VALUES ($1::text, $4::int), ($2, 3)) AS t (tenant_id, count), generate_series(1, t.count) n`,
    [large, small, CONTEXT, MANY],
  );
  await vacuumed(api.database, 'messages');
  const client = await api.clientOf(small, ['read']);
  const list = await eventsOf(small);
  const read = await rowsRead(api.database, /^(messages|event_groups|sessions)/, async () => {
    expect(typesOf(await list({ session_id: CONTEXT }))).toEqual(Array(3).fill('dispatch.success'));
    const page = await client.ok('/messages/get', { session_id: CONTEXT }, MessagesGetResponse);
    expect(page.count).toBe(3);
    await client.ok('/telemetry/get_traces', { session_id: CONTEXT }, TracesResponse);
  });
  expect(read).toBeLessThan(ROWS_MOST);
});

test('the newest events of a long session are found without a look at the others', async () => {
  const tenantId = await api.otherTenant();
  // Each in a minute of its own.
  await api.database.query(
    `INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, types, events)
     SELECT uuid_of($1), ('01' || lpad(to_hex(n), 6, '0') || repeat('0', 24))::uuid, session_uuid(uuid_of($1), $2), $2, event_bit('dispatch.sent'),
            '[{"instance_id": "other-1"}]' FROM generate_series(1, $3::int) n`,
    [tenantId, CONTEXT, MANY],
  );
  await vacuumed(api.database, 'event_groups');
  const list = await eventsOf(tenantId);
  await list({ session_id: CONTEXT }); // for a minute it is known to be too long to be counted
  const read = await rowsRead(api.database, /^event_groups/, async () => {
    const { events } = await list({ session_id: CONTEXT, page_size: 10 });
    const ids = events.map(({ event_id }) => event_id);
    expect(ids).toEqual(ids.toSorted().reverse());
    expect(ids).toHaveLength(10);
  });
  expect(read).toBeLessThan(ROWS_MOST);
});

test('events of a type, a category or an instance are found without a look at those of others', async () => {
  const tenantId = await api.otherTenant();
  const list = await eventsOf(tenantId);
  await addGroups(tenantId, MANY, ['dispatch.sent']);
  const read = await rowsRead(api.database, /^event_groups/, async () => {
    expect(typesOf(await list({ type: 'tenant.created' }))).toEqual(['tenant.created']);
    expect(typesOf(await list({ category: 'tenant', source: 'platform' }))).toEqual(['tenant.created']);
    for (const filter of [{ type: 'plan.failed' }, { category: 'guard' }, { type: 'no.such' }, { source: 'elsewhere' }])
      expect(await list(filter)).toMatchObject({ count: 0, events: [] });
    expect(await list({ instance_id: 'never-seen' })).toMatchObject({ count: 0, events: [] });
    expect((await list({ type: 'dispatch.sent', page: 700 })).events).toHaveLength(25);
  });
  expect(read).toBeLessThan(ROWS_MOST);
});

test('a page of filtered events has those of a group that match, each under its own id', async () => {
  const tenantId = await api.otherTenant();
  const list = await eventsOf(tenantId);
  await addGroups(tenantId, 30, ['dispatch.success', 'message.completed'], 'worker-1');
  const all = (await list({ page_size: 100 })).events.filter(({ category }) => category !== 'tenant');
  expect(all).toHaveLength(60);
  const ids = (type: string) => all.filter(({ event_type }) => event_type === type).map(({ event_id }) => event_id);
  for (const filter of [{ type: 'message.completed' }, { category: 'message' }]) {
    const pages = await Promise.all([1, 2].map((page) => list({ ...filter, page, page_size: 20 })));
    expect(pages.flatMap(({ events }) => events.map(({ event_id }) => event_id))).toEqual(ids('message.completed'));
    expect(pages.map(({ count }) => count)).toEqual([30, 30]);
  }
  const ofInstance = await list({ instance_id: 'worker-1', page_size: 100 });
  expect(ofInstance.events.map(({ event_id }) => event_id)).toEqual(ids('dispatch.success'));
});

test('events of an instance whose mark another one shares are told apart', async () => {
  const [shared] = await api.database.query<{ name: string; other: string }>(
    `SELECT min(name) AS name, max(name) AS other FROM (SELECT 'agent-' || n AS name FROM generate_series(1, 2000) n) a
      GROUP BY instance_mark(name) HAVING count(*) > 1 LIMIT 1`,
  );
  if (!shared) throw new Error('no two names have one mark');
  const tenantId = await api.otherTenant();
  const list = await eventsOf(tenantId);
  await addGroups(tenantId, 5, ['dispatch.sent'], shared.name);
  expect(await list({ instance_id: shared.name })).toMatchObject({ count: 5 });
  expect(await list({ instance_id: shared.other })).toMatchObject({ count: 0 });
});
