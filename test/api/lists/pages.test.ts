import { beforeAll, describe, expect, test } from 'vitest';
import { MessagesGetResponse, MessagesPendingResponse } from '../../../contracts/api/messages.js';
import { GetEventsResponse } from '../../../contracts/api/telemetry.js';
import { newEventId } from '../../../runtime/ids.js';
import { insertAgent } from '../../setup/core.js';
import { rowsRead, vacuumed } from '../../setup/rows-read.js';
import { ASKS, answerMessage, joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi({ tenantMaxInFlight: 1_000 });

/** Adds events that are older than all others. @param from they are numbered from here on, the oldest first */
async function addEvents(tenantId: string, from: number, to: number): Promise<void> {
  await api.database.query(
    `INSERT INTO event_groups (tenant_id, group_id, dispatch_id, types, instance_mark, events)
     SELECT uuid_of($1), ('01000000' || lpad(n || '00', 24, '0'))::uuid, gen_random_uuid(), event_bit('dispatch.sent'), instance_mark('a'), '[{"instance_id": "a"}]'
       FROM generate_series($2::int, $3::int) n`,
    [tenantId, from, to],
  );
}
const addNewestEvent = (tenantId: string) =>
  api.database.query(
    `SELECT record_event($1, $2, 'dispatch.sent', 'info', '', NULL, '{"dispatch_id": "dsp_00000000-0000-7000-8000-000000000000"}')`,
    [tenantId, newEventId()],
  );
const idsOf = (tenantId: string) =>
  api.database.column<string>('SELECT event_id FROM events WHERE tenant_uuid = uuid_of($1) ORDER BY event_id DESC', [
    tenantId,
  ]);

describe('a list of events', () => {
  test('counts exactly up to 10,000 and estimates beyond, for its tenant alone', async () => {
    const [one, two] = [await api.otherTenant(), await api.otherTenant()];
    const list = async (tenantId: string, body: object = {}) =>
      (await api.clientOf(tenantId, ['read'])).ok('/telemetry/get_events', body, GetEventsResponse.strict());
    await addEvents(one, 2, 10_000); // and the one of the tenant's creation
    const exact = await list(one);
    expect(exact).toMatchObject({ count: 10_000, page: 1, page_size: 25, total_pages: 400 });
    expect(exact).not.toHaveProperty('count_estimated');

    await addNewestEvent(one);
    const estimated = await list(one, { page_size: 100 });
    expect(estimated).toMatchObject({ count_estimated: true });
    expect(estimated.count).toBeGreaterThan(10_000);
    expect(estimated.total_pages).toBeGreaterThan(100);
    await api.database.query('ANALYZE event_groups');
    expect(await list(one, { type: 'dispatch.sent' })).toMatchObject({ count: 10_000 });
    const last = await list(one, { page: 401 });
    expect(last).toMatchObject({ count: 10_001, total_pages: 401 });
    expect(last.events).toHaveLength(1);
    expect(last).not.toHaveProperty('count_estimated');
    expect(await list(two)).toMatchObject({ count: 1, total_pages: 1 });
  });

  test('estimates from the statistics of the tenant, and never fewer than it has shown', async () => {
    const tenantId = await api.otherTenant();
    const client = await api.clientOf(tenantId, ['read']);
    await addEvents(tenantId, 2, 30_000);
    await api.database.query('ANALYZE event_groups');
    const { count, count_estimated } = await client.ok('/telemetry/get_events', {}, GetEventsResponse.strict());
    expect(count_estimated).toBe(true);
    expect(count).toBeGreaterThan(20_000);
    expect(count).toBeLessThan(40_000);
    await addEvents(tenantId, 30_001, 60_000);
    const deep = await client.ok('/telemetry/get_events', { page: 500, page_size: 100 }, GetEventsResponse.strict());
    expect(deep).toMatchObject({ count_estimated: true });
    expect(deep.total_pages).toBeGreaterThan(500);
  });

  test('numbers its pages from the newest event as of each call', async () => {
    const tenantId = await api.otherTenant();
    const client = await api.clientOf(tenantId, ['read']);
    await addEvents(tenantId, 1, 23);
    const page = async (number: number) => {
      const body = { page: number, page_size: 5 };
      const { events, count } = await client.ok('/telemetry/get_events', body, GetEventsResponse.strict());
      return { ids: events.map(({ event_id }) => event_id), count };
    };
    const all = await idsOf(tenantId);
    for (let number = 1; number <= 5; number += 1) {
      expect(await page(number)).toEqual({ ids: all.slice((number - 1) * 5, number * 5), count: 24 });
    }
    await addNewestEvent(tenantId);
    expect(await page(2)).toEqual({ ids: (await idsOf(tenantId)).slice(5, 10), count: 25 });
    expect(await page(6)).toEqual({ ids: [], count: 25 });
    expect(await page(1_000_000)).toEqual({ ids: [], count: 25 });
  });

  test('reads the rows of its page only, however many it skips and counts, without statistics too', async () => {
    const tenantId = await api.otherTenant();
    const client = await api.clientOf(tenantId, ['read']);
    await addEvents(tenantId, 1, 20_000);
    await vacuumed(api.database, 'event_groups');
    await api.database.query('DELETE FROM pg_statistic');
    await client.token();
    const read = await rowsRead(api.database, /^event_groups/, async () => {
      const body = { page: 600, page_size: 25 };
      const { events } = await client.ok('/telemetry/get_events', body, GetEventsResponse);
      expect(events).toHaveLength(25);
    });
    expect(read).toBeLessThan(100);
  });
});

describe('a list of messages', () => {
  const ids: string[] = [];
  beforeAll(async () => {
    await joinOnRecord(api, 'worker-1');
    const asker = { instance_id: 'asker-1', agent_type: 'asker', mesh_id: 'mesh_test', connection_epoch: 1 };
    await insertAgent(api.database, { tenant_id: api.tenantId, ...asker });
    for (let sent = 0; sent < 7; sent += 1) {
      const metadata = { agent_type: sent < 4 ? 'worker' : 'asker' };
      ids.unshift((await api.client.send(`hello ${sent}`, { blocking: false, metadata })).id);
    }
    for (const id of ids.slice(0, 3)) await answerMessage(api, id, ASKS);
    await api.client.post('/messages/cancel', { message_id: ids[6] });
  });
  const list = async (body: object) => {
    const { messages, ...page } = await api.client.ok('/messages/get', body, MessagesGetResponse.strict());
    return { ids: messages.map(({ message_id }) => message_id), ...page };
  };

  test('has pages, and filters of those that are not over and of those that are', async () => {
    expect(await list({ page: 2, page_size: 3 })).toMatchObject({ ids: ids.slice(3, 6), count: 7, total_pages: 3 });
    expect(await list({ state: 'input-required', page_size: 2 })).toMatchObject({ ids: ids.slice(0, 2), count: 3 });
    expect((await list({ state: 'submitted' })).ids).toEqual(ids.slice(3, 6));
    expect((await list({ state: 'canceled' })).ids).toEqual(ids.slice(6));
    expect((await list({ state: 'submitted', error_code: 'HANDLER_ERROR' })).count).toBe(0);
    const mine = await api.clientOf(api.tenantId, ['read']);
    expect((await mine.ok('/messages/get', { state: 'submitted' }, MessagesGetResponse)).count).toBe(3);
    const other = await api.clientOf(await api.otherTenant(), ['read']);
    expect((await other.ok('/messages/get', { state: 'submitted' }, MessagesGetResponse)).count).toBe(0);
  });

  test('of those that wait begins with the oldest question, and leaves proposed plans out', async () => {
    const steps = [{ description: 'look', message: 'look', agent_type: 'worker' }];
    const { session_id } = await api.client.message(ids[2] ?? '');
    expect((await api.client.post('/plans/create', { session_id, description: 'a plan', steps })).status).toBe(200);
    const ofPlans = await api.database.query(
      "SELECT 1 FROM input_requests WHERE plan_id IS NOT NULL AND state = 'pending'",
    );
    expect(ofPlans).toHaveLength(1);
    const pending = async (body: object) => {
      const { messages, total } = await api.client.ok('/messages/pending', body, MessagesPendingResponse.strict());
      return { ids: messages.map(({ message_id }) => message_id), total };
    };
    expect(await pending({})).toEqual({ ids: ids.slice(0, 3), total: 3 });
    expect(await pending({ limit: 1, offset: 1 })).toEqual({ ids: ids.slice(1, 2), total: 3 });
    expect(await pending({ offset: 3 })).toEqual({ ids: [], total: 3 });
    expect(await pending({ session_id })).toEqual({ ids: ids.slice(2, 3), total: 1 });
  });
});
