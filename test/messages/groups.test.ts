import { beforeEach, expect, test } from 'vitest';
import type { MessageGroupsRequest } from '../../contracts/api/messages.js';
import { LIMITS } from '../../contracts/limits.js';
import { groupMessages } from '../../messages/read/lists/message-groups.js';
import { freshDatabase } from '../setup/database.js';
import { RecordFixture } from '../setup/record-fixture.js';

const database = await freshDatabase();
const db = database.db();
const fixture = new RecordFixture(database);
beforeEach(async () => {
  await fixture.reset();
  await fixture.agent('x');
});

const groups = (request: MessageGroupsRequest, inFlightMax = 2_000) =>
  groupMessages(db, fixture.caller.tenant_id, request, inFlightMax);

test('messages that wait are counted by what for', async () => {
  await fixture.send();
  const [first, second] = [await fixture.send(), await fixture.send({ instance_id: 'x' })];
  const [room, ...others] = await groups({ by: 'waits_for' });
  expect(others).toEqual([]);
  expect(room).toMatchObject({ key: 'room', count: 2, sample_message_id: second.message_id });
  const { created_at } = await fixture.gateway.get(fixture.caller, first.message_id);
  expect(room?.oldest_at).toBe(created_at);
  expect(await groups({ by: 'waits_for' }, 1)).toMatchObject([{ key: 'quota', count: 2 }]);
  await fixture.setAgents(`status = 'offline'`);
  expect(await groups({ by: 'waits_for' })).toMatchObject([{ key: 'agent', count: 2 }]);
});

test('messages that are not over are counted by type, and those of a state', async () => {
  for (let sent = 0; sent < 3; sent += 1) await fixture.send();
  expect(await groups({ by: 'agent_type' })).toMatchObject([{ key: 'worker', count: 3 }]);
  expect(await groups({ by: 'agent_type', state: 'working' })).toMatchObject([{ key: 'worker', count: 1 }]);
  expect(await groups({ by: 'agent_type', since: new Date(Date.now() + 60_000).toISOString() })).toEqual([]);
});

test('messages that failed are counted by error', async () => {
  await fixture.send();
  const message = await fixture.queue();
  await fixture.look(message, LIMITS.deadlineMsDefault + 100);
  const failed = { key: 'TARGET_UNAVAILABLE', count: 1, sample_message_id: message.message_id };
  expect(await groups({ by: 'error_code' })).toMatchObject([failed]);
  expect(await groups({ by: 'error_code', state: 'working' })).toEqual([]);
  expect(await groups({ by: 'agent_type', state: 'failed' })).toMatchObject([{ key: 'worker', count: 1 }]);
});
