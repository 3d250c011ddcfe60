import { expect, test } from 'vitest';
import { MessagesGetResponse } from '../../contracts/api/messages.js';
import { GetEventsResponse } from '../../contracts/api/telemetry.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import { insertAgent } from '../setup/core.js';
import { rowsRead } from '../setup/rows-read.js';
import { stepAndTake } from '../setup/take.js';
import { insertPastMessages } from './lists/past-messages.js';
import { serveApi } from './served-api.js';

const api = await serveApi();
const tenant_id = await api.otherTenant();
const client = await api.clientOf(tenant_id, ['full']);
for (const agent_type of ['painter', 'plumber']) {
  const agent = { instance_id: `${agent_type}-1`, agent_type, public_url: 'http://192.0.2.1/' };
  await insertAgent(api.database, { tenant_id, ...agent });
}
await insertAgent(api.database, { tenant_id, instance_id: 'nobody-1', agent_type: 'nobody', status: 'offline' });
const before = new Date(Date.now() - 60_000).toISOString();
const painted = await runStep('painter', null);
const failed = await runStep('plumber', { code: 'HANDLER_ERROR', message: 'no luck' });
const { dispatch_id } = failed;
const ids = { painted: painted.message_id, failed: failed.message_id, waiting: await accept('nobody') };

async function accept(agent_type: string): Promise<string> {
  return (await client.send('hello', { metadata: { agent_type }, blocking: false })).id;
}

/** Sends a message, which its agent completes or fails. */
async function runStep(agentType: string, error: { code: string; message: string } | null) {
  const message_id = await accept(agentType);
  const { step, open } = await stepAndTake(api.core, { tenant_id, message_id });
  if (!open) throw new Error(`no agent has it: ${JSON.stringify(step)}`);
  const ref = { tenant_id, message_id, dispatch_id: open.dispatch_id };
  const dispatches = createDispatches(api.core);
  const state = error ? 'failed' : 'completed';
  await dispatches.end(open, { state, artifacts: [], ...(error && { error }) }, 0);
  return ref;
}

const listed = async (filter: object) => {
  const { count, messages } = await client.ok('/messages/get', filter, MessagesGetResponse.strict());
  expect(count).toBe(messages.length);
  return messages.map(({ message_id }) => message_id);
};
const eventsOf = async (filter: object) => {
  const { count, events } = await client.ok('/telemetry/get_events', filter, GetEventsResponse.strict());
  expect(count).toBe(events.length);
  return events.map(({ type }) => type).reverse();
};

test('messages are filtered by agent, by error and by time', async () => {
  const { painted, failed, waiting } = ids;
  expect(await listed({})).toEqual([waiting, failed, painted]);
  expect(await listed({ agent_type: 'painter' })).toEqual([painted]);
  expect(await listed({ agent_type: 'nobody' })).toEqual([waiting]);
  expect(await listed({ instance_id: 'plumber-1' })).toEqual([failed]);
  expect(await listed({ error_code: 'HANDLER_ERROR' })).toEqual([failed]);
  expect(await listed({ error_code: 'HANDLER_ERROR', instance_id: 'painter-1' })).toEqual([]);
  expect(await listed({ since: before })).toEqual([waiting, failed, painted]);
  expect(await listed({ until: before })).toEqual([]);
  const created = 'SELECT created_at FROM messages WHERE message_id = $1';
  const [middle] = await api.database.query<{ created_at: Date }>(created, [failed]);
  const at = (ms: number) => new Date((middle?.created_at.getTime() ?? 0) + ms).toISOString();
  expect(await listed({ since: at(0), until: at(1) })).toEqual([failed]);
});

test('a filter that is none is refused, and another tenant sees nothing', async () => {
  for (const bad of [{ since: 'yesterday' }, { agent_type: '' }, { error_code: '' }, { instance: 'x' }]) {
    expect(await client.failure('/messages/get', bad)).toBe('400 BAD_REQUEST');
  }
  const other = await api.clientOf(await api.otherTenant(), ['full']);
  for (const filter of [{ error_code: 'HANDLER_ERROR' }, { instance_id: 'plumber-1' }, { agent_type: 'plumber' }]) {
    expect((await other.ok('/messages/get', filter, MessagesGetResponse)).count).toBe(0);
  }
  for (const filter of [{ message_id: ids.failed }, { instance_id: 'plumber-1' }]) {
    expect((await other.ok('/telemetry/get_events', filter, GetEventsResponse)).count).toBe(0);
  }
});

test('events are filtered by message, with those of its dispatches, and by instance', async () => {
  const all = ['message.received', 'dispatch.sent', 'dispatch.failed', 'message.error'];
  expect(await eventsOf({ message_id: ids.failed })).toEqual(all);
  const ofMessage = { message_id: ids.failed, category: 'message' };
  expect(await eventsOf(ofMessage)).toEqual(['message.received', 'message.error']);
  expect(await eventsOf({ message_id: 'msg_unknown' })).toEqual([]);
  expect(await eventsOf({ instance_id: 'plumber-1' })).toEqual(['dispatch.sent', 'dispatch.failed']);
  expect(await eventsOf({ instance_id: 'plumber-1', message_id: ids.painted })).toEqual([]);
  expect(dispatch_id).toMatch(/^dsp_/);
});

test('messages of an instance or an error, and events of a message, are found by an index, among many messages that are not', async () => {
  await insertPastMessages(api.database, {
    ...{ tenantId: tenant_id, to: 20_000, at: "now() - interval '1 day' - n * interval '1 ms'" },
    ...{ state: "'completed'", instance: "'other-1'" },
  });
  await api.database.query(
    `INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, types, instance_mark, events)
     SELECT uuid_of($1), lpad(n || '00', 32, '0')::uuid, session_uuid(uuid_of($1), 'ses_0'), 'ses_0', event_bit('dispatch.sent'), instance_mark('other-1'), '[{"instance_id": "other-1"}]' FROM generate_series(1, 20000) n`,
    [tenant_id],
  );
  await api.database.query('ANALYZE event_groups');
  const read = await rowsRead(api.database, /^(messages|event_groups)/, async () => {
    expect(await listed({ instance_id: 'plumber-1' })).toEqual([ids.failed]);
    expect(await listed({ error_code: 'HANDLER_ERROR' })).toEqual([ids.failed]);
    expect(await eventsOf({ message_id: ids.failed })).toHaveLength(4);
  });
  expect(read).toBeLessThan(1_000);
});

test('messages of an error are found without a look at those of other tenants', async () => {
  await insertPastMessages(api.database, {
    ...{ tenantId: await api.otherTenant(), to: 20_000, at: "now() - interval '1 day' - n * interval '1 ms'" },
    ...{ state: "'failed'", error: "'INTERNAL'" },
  });
  const read = await rowsRead(api.database, /^messages/, async () => {
    expect(await listed({ error_code: 'HANDLER_ERROR' })).toEqual([ids.failed]);
    expect(await listed({ error_code: 'INTERNAL' })).toEqual([]);
  });
  expect(read).toBeLessThan(1_000);
});
