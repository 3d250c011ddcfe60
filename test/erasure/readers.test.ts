import { expect, test } from 'vitest';
import { GetUsageResponse } from '../../contracts/api/usage.js';
import { answerMessage, COMPLETED, joinOnRecord } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { erasing } from './eraser-fixture.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');
const { order, turn, report, finish, alertsRead } = await erasing(api);

const USED = { usage: { input_tokens: 90, output_tokens: 10, model: 'm' } };
const sent = async () => {
  const { id, contextId } = await api.client.send('hello', { blocking: false });
  await answerMessage(api, id, { ...COMPLETED, ...USED });
  return { message_id: id, session_id: String(contextId) };
};
const tokens = async () =>
  (await api.client.ok('/telemetry/get_usage', { summary: true }, GetUsageResponse)).totals.total_tokens;
/** Alert rules that are not read here stand at the first event. */
const alertsStand = () =>
  api.database.query(
    "INSERT INTO event_cursors (consumer, position) VALUES ('alerts', 0) ON CONFLICT (consumer) DO UPDATE SET position = 0",
  );
const rowsOf = (message_id: string) => api.database.query('SELECT 1 FROM messages WHERE message_id = $1', [message_id]);
test('messages wait until alert rules have read their events', async () => {
  await alertsStand();
  const { message_id } = await sent();
  const id = await order('messages', { message_id });
  await turn();
  expect((await report(id)).finished_at).toBeNull();
  expect(await rowsOf(message_id)).toHaveLength(1);
  await alertsRead();
  expect(await finish(id)).toMatchObject({ messages: 1 });
});

test('alert rules that are behind for longer than they may hold up no erasure', async () => {
  await alertsStand();
  const { message_id } = await sent();
  const id = await order('messages', { message_id });
  await turn();
  expect(await rowsOf(message_id)).toHaveLength(1);
  await turn({ readWithinMs: 0 });
  expect(await rowsOf(message_id)).toHaveLength(0);
  expect(await finish(id)).toMatchObject({ messages: 1 });
});

test('usage is added up before anything goes, however long that takes', async () => {
  const before = await tokens();
  const { message_id } = await sent();
  await alertsRead();
  const id = await order('messages', { message_id });
  await api.database.query("UPDATE erasures SET requested_at = now() - interval '1 hour'");
  await turn({ catchUpUsage: async () => false });
  expect(await rowsOf(message_id)).toHaveLength(1);
  expect(await finish(id)).toMatchObject({ messages: 1 });
  expect((await tokens()) - before).toBe(100);
});

test('the events of a session itself wait too', async () => {
  const { message_id, session_id } = await sent();
  await alertsStand();
  const id = await order('sessions', { session_id });
  const closed = () =>
    api.database.query("SELECT 1 FROM events WHERE session_id = $1 AND event_type = 'session.closed'", [session_id]);
  await turn(); // closes it
  await alertsRead();
  await turn(); // erases its message
  expect([(await rowsOf(message_id)).length, (await closed()).length]).toEqual([0, 1]);
  await alertsStand();
  await turn();
  expect(await closed()).toHaveLength(1);
  await alertsRead();
  expect(await finish(id)).toMatchObject({ sessions: 1, messages: 1 });
  expect(await closed()).toHaveLength(0);
});
