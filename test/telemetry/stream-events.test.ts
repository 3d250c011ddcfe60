import { expect, test } from 'vitest';
import { GetEventsResponse } from '../../contracts/api/telemetry.js';
import { LIMITS } from '../../contracts/limits.js';
import { newEventId } from '../../runtime/ids.js';
import { positionEvents } from '../../telemetry/event-sequencer.js';
import { answerMessage, COMPLETED, joinOnRecord } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { until, within } from '../setup/until.js';
import { EventFollower, type StreamCall } from './event-follower.js';
import { writeEvent } from './event-writer.js';

const api = await serveApi({ sequencer: true });
const second = await serveApi({ beside: api });
await joinOnRecord(api, 'worker-1');
const token = await api.tokenOf(['read']);

const follow = (call?: StreamCall, onEvent?: Parameters<typeof EventFollower.open>[3]) =>
  EventFollower.open(api.baseUrl, token, call, onEvent);
const send = () => api.client.send('hi', { metadata: { agent_type: 'worker' }, blocking: false });
const listed = async (filter: object = {}) => {
  const { events } = await api.client.ok('/telemetry/get_events', { page_size: 100, ...filter }, GetEventsResponse);
  return events.reverse();
};
/** Sends a message, which its agent completes. */
async function complete(): Promise<{ id: string; contextId: string }> {
  const task = await send();
  await answerMessage(api, task.id, COMPLETED);
  return task;
}

test('shows the events that happen from now on, as get_events lists them', async () => {
  await complete();
  const stream = await follow();
  const { id, contextId } = await complete();
  await stream.has(5);
  const expected = await listed({ session_id: contextId });
  expect(stream.records).toEqual(expected);
  const heads = expected.map(({ event_id, event_type }) => [event_id, event_type]);
  expect(stream.received.map(({ id: eventId, event }) => [eventId, event])).toEqual(heads);
  expect(expected.map(({ event }) => event.message_id ?? null)).toContain(id);
});

test('is narrowed by each filter of get_events', async () => {
  const { id, contextId } = await send();
  const filters: Record<string, string>[] = [
    { message_id: id },
    { session_id: contextId },
    { instance_id: 'worker-1' },
    { category: 'dispatch' },
    { type: 'message.completed' },
    { source: 'platform' },
    { message_id: id, category: 'dispatch' },
    { source: 'elsewhere' },
  ];
  const streams: [object, EventFollower][] = [];
  for (const [nth, filter] of filters.entries())
    streams.push([filter, await follow(nth % 2 === 0 ? { body: filter } : { method: 'GET', query: filter })]);
  const [before] = (await listed()).slice(-1);
  await complete();
  await answerMessage(api, id, COMPLETED);
  const since = (await listed()).filter(({ event_id }) => event_id > (before?.event_id ?? ''));
  for (const [filter, stream] of streams) {
    const wanted = new Set((await listed(filter)).map(({ event_id }) => event_id));
    const expected = since.map(({ event_id }) => event_id).filter((eventId) => wanted.has(eventId));
    await stream.has(expected.length);
    expect(stream.ids.filter((eventId) => since.some(({ event_id }) => event_id === eventId))).toEqual(expected);
  }
  expect(since.length).toBeGreaterThan(6);
});

test('an event does not arrive before its state can be read', async () => {
  const checks: Promise<void>[] = [];
  const check = async (data: string) => {
    const { event_id, event } = JSON.parse(data);
    const read = api.client.post('/messages/get_by_id', { message_id: event.message_id });
    const ids = (await listed({ type: 'message.completed' })).map((record) => record.event_id);
    expect((await read).body).toMatchObject({ message: { state: 'completed' } });
    expect(ids).toContain(event_id);
  };
  const stream = await follow({ body: { type: 'message.completed' } }, ({ data }) => void checks.push(check(data)));
  for (let count = 0; count < 5; count += 1) await complete();
  await stream.has(5);
  await Promise.all(checks);
  expect(checks).toHaveLength(5);
});

test('get_events has an event as soon as its state can be read', async () => {
  const stateOf = async (id: string) => (await api.client.message(id)).state;
  for (let count = 0; count < 5; count += 1) {
    const { id } = await send();
    const answered = answerMessage(api, id, COMPLETED);
    while ((await stateOf(id)) !== 'completed') {} // no pause: the first answer that says so is followed by the list
    expect((await listed({ message_id: id })).map(({ event_type }) => event_type)).toContain('message.completed');
    await answered;
  }
});

test('continues on any node after the last event, without a gap or a repeat', async () => {
  const first = await writeEvent(api.database, api.tenantId);
  const ids: string[] = [];
  let writing = true;
  const writer = (async () => {
    while (ids.length < 400) ids.push(await writeEvent(api.database, api.tenantId));
    writing = false;
  })();
  const seen: string[] = [];
  for (let turn = 0; writing || seen.length < ids.length; turn += 1) {
    const last = seen.at(-1) ?? first;
    const ways: StreamCall[] = [
      { body: { last_event_id: last } },
      { query: { last_event_id: last } },
      { headers: { 'last-event-id': last }, body: { last_event_id: first } },
      { method: 'GET', query: { last_event_id: last } },
    ];
    const node = turn % 2 === 0 ? api : second;
    const stream = await EventFollower.open(node.baseUrl, token, ways[turn % ways.length]);
    const wanted = Math.min(20 + turn, 400 - seen.length);
    await stream.has(wanted);
    await stream.leave();
    seen.push(...stream.ids);
  }
  await writer;
  expect(seen).toEqual(ids);
});

test('a stream that continues first shows all that it missed, page by page', async () => {
  const first = await writeEvent(api.database, api.tenantId);
  await api.database.query(
    `INSERT INTO event_groups (tenant_id, types, group_id, events)
     SELECT uuid_of($1), event_bit('tenant.created'), id_bound(NULL, now() + n * interval '1 ms')::uuid, '[{"tenant_id": "x", "name": "y"}]'
       FROM generate_series(1, 1300) n`,
    [api.tenantId],
  );
  const stream = await follow({ body: { last_event_id: first } });
  await stream.has(1_300);
  const last = await writeEvent(api.database, api.tenantId, newEventId());
  await stream.has(1_301);
  expect(new Set(stream.ids).size).toBe(1_301);
  expect(stream.ids.at(-1)).toBe(last);
});

test('an event id that is unknown, or of another tenant, is refused', async () => {
  const foreign = await writeEvent(api.database, await api.otherTenant());
  for (const last_event_id of [foreign, newEventId(), 'x'])
    await expect(follow({ body: { last_event_id } })).rejects.toThrow('404 NOT_FOUND');
  await expect(follow({ body: { last_event_id: '' } })).rejects.toThrow('400 BAD_REQUEST');
  await expect(follow({ body: { type: 7 } })).rejects.toThrow('400 BAD_REQUEST');
  await expect(follow({ method: 'GET', query: { kind: 'x' } })).rejects.toThrow('400 BAD_REQUEST');
});

test('an event that was just committed is waited for', async () => {
  const alone = await serveApi();
  const last_event_id = await writeEvent(alone.database, alone.tenantId);
  const opening = EventFollower.open(alone.baseUrl, await alone.tokenOf(['read']), { body: { last_event_id } });
  await positionEvents(alone.db);
  const stream = await opening;
  const next = await writeEvent(alone.database, alone.tenantId);
  await positionEvents(alone.db);
  await stream.has(1);
  expect(stream.ids).toEqual([next]);
});

test('another tenant sees nothing of it', async () => {
  const elsewhere = await api.otherTenant();
  const stream = await EventFollower.open(api.baseUrl, await api.tokenOf(['read'], undefined, elsewhere));
  await complete();
  const own = await writeEvent(api.database, elsewhere);
  await stream.has(1);
  expect(stream.ids).toEqual([own]);
});

test('a tenant has so many streams and no more; one that ends makes room', async () => {
  const tenant = await api.otherTenant();
  const own = await api.tokenOf(['read'], undefined, tenant);
  const open = () => EventFollower.open(api.baseUrl, own);
  const streams = await Promise.all(Array.from({ length: LIMITS.eventStreamsPerTenant }, open));
  await expect(open()).rejects.toThrow('429 RATE_LIMITED');
  await (await follow()).leave();
  await streams[0]?.leave();
  await (await until(open, { what: 'room' })).leave();
});

test('ends within 5 s of the revocation of its credential, and says so', async () => {
  const { client_id, client_secret } = await api.credentialOf(api.tenantId, ['read']);
  const stream = await EventFollower.open(api.baseUrl, await api.tokenAs({ client_id, client_secret }));
  const other = await follow();
  await api.client.post('/credentials/revoke', { credential_id: client_id });
  await within(stream.done, 5_000, 'the end of the stream');
  expect(stream.closed).toMatchObject({ code: 'unauthorized' });
  await complete();
  await other.has(1);
});

test('ends with its token', async () => {
  const { client_id } = await api.credentialOf(api.tenantId, ['read']);
  const claims = { tenant_id: api.tenantId, agent_type: 'credential', scopes: ['read' as const], sub: client_id };
  const short = await api.tokens.issueAccessToken({ ...claims, credential_id: client_id }, 2);
  const stream = await EventFollower.open(api.baseUrl, short);
  const last = await writeEvent(api.database, api.tenantId);
  await within(stream.done, 8_000, 'the end of the stream');
  expect(stream.closed).toMatchObject({ code: 'unauthorized', last_event_id: last });
});
