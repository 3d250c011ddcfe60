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

test('it goes on after a message that failed or was canceled, and no other session waits for it', async () => {
  await fixture.reset();
  await fixture.agent('a', { max_concurrent_sessions: 0 });
  const wish = { agent_type: 'worker', idle_timeout_seconds: 0, ordered: true };
  const { session } = await fixture.sessions.init(fixture.caller, wish);
  expect(session).toMatchObject({ ordered: true });
  const queue = () => fixture.queue({}, session.session_id);
  const [first, canceled, fails, last] = [await queue(), await queue(), await queue(), await queue()];
  const kinds = async () => {
    const found = [];
    for (const message of [first, canceled, fails, last]) found.push(await fixture.kind(message));
    return found;
  };
  expect(await kinds()).toEqual(['result', 'turn', 'turn', 'turn']);
  expect(await fixture.kind(await fixture.queue())).toBe('result');
  const late = await fixture.send({}, { contextId: session.session_id });
  expect(late.verdict).toBe('rests'); // though its agent has room
  await fixture.gateway.cancel(fixture.caller, canceled.message_id, 'test');
  expect(await kinds()).toEqual(['result', 'done', 'turn', 'turn']);
  await fixture.answer(first);
  expect(await kinds()).toEqual(['done', 'done', 'result', 'turn']);
  await fixture.answer(fails, { state: 'failed', error: { code: 'HANDLER_ERROR', message: 'no luck' } });
  expect(await kinds()).toEqual(['done', 'done', 'done', 'result']);
  await fixture.answer(last);
  expect(await fixture.kind(late)).toBe('result');
});
