import { expect, test } from 'vitest';
import { freshDatabase } from '../setup/database.js';
import { RecordFixture } from '../setup/record-fixture.js';

const database = await freshDatabase();
const fixture = new RecordFixture(database);

test('the end of a message marks the next of its ordered session, so that it is woken even if the process dies', async () => {
  await fixture.reset();
  await fixture.agent('a');
  const session = await fixture.open('worker', true);
  const first = await fixture.queue({}, session);
  const second = await fixture.queue({}, session);
  const third = await fixture.queue({}, session);
  const marked = () =>
    database.column('SELECT message_id FROM running_messages WHERE wake_requested_at <= now() ORDER BY message_id');
  const kinds = [];
  for (const message of [first, second, third]) kinds.push(await fixture.kind(message)); // their workflows look, and wait
  expect(kinds).toEqual(['result', 'turn', 'turn']);
  expect(await marked()).toEqual([]);

  fixture.advanced = [];
  await fixture.answer(first);
  expect(fixture.advanced).toEqual([second.message_id]);
  expect(await marked()).toEqual([second.message_id]);
  expect(await fixture.kind(second)).toBe('result');
  expect(await marked()).toEqual([]);
});

test('a message that was dispatched keeps its turn, also beside one that was accepted at an earlier time', async () => {
  await fixture.reset();
  await database.query(
    `INSERT INTO running_messages (tenant_id, message_id, session_id, state, attempts, created_at)
     VALUES ($1, 'msg_1', 'ses_1', 'submitted', 0, now() - interval '1 min'), ($1, 'msg_2', 'ses_1', 'working', 1, now())`,
    [fixture.tenantId],
  );
  const turn = "SELECT next_in_order($1, 'ses_1') #>> '{0,message_id}'";
  expect(await database.value(turn, [fixture.tenantId])).toBe('msg_2');
});
