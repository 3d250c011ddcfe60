import { expect, test } from 'vitest';
import {
  type AcceptHook,
  type DispatchOffer,
  runAcceptTransaction,
  UNCOUNTED,
} from '../../messages/accept/accept-transaction.js';
import { draftOf } from '../../messages/accept/draft.js';
import { newId } from '../../runtime/ids.js';
import { textMessage } from '../setup/core.js';
import { MESH, type Sent } from '../setup/record-fixture.js';
import { acceptCalls } from './accept-calls.js';

const { accept, agent, database, dispatches, insert, names, one, transactionsOf, two } = await acceptCalls();

const MANY = 100;

test('messages that come at once share transactions, and each gets its own answer', async () => {
  let sent: Sent[] = [];
  const accepting = await transactionsOf(async () => {
    sent = await Promise.all(names(MANY).map((name, place) => accept(name, { of: place % 2 === 0 ? one : two })));
  });
  expect(sent.map(({ verdict }) => verdict)).toEqual(sent.map(() => 'dispatched'));
  expect(sent.map(({ message_id }) => message_id)).toEqual(sent.map(({ newId }) => newId));
  expect(accepting).toBeLessThan(MANY / 4);
  const ending = await transactionsOf(async () => {
    const ends = await Promise.all(
      sent.map((message, place) => {
        const parts = [{ kind: 'text' as const, text: `answer ${place}` }];
        return dispatches.end(message, { state: 'completed', artifacts: [{ artifactId: 'a', parts }] }, 1);
      }),
    );
    expect(ends.map((found) => found?.state)).toEqual(ends.map(() => 'completed'));
  });
  expect(ending).toBeLessThan(MANY / 4);
  const rows = await database.query<{ message_id: string; tenant_id: string; answer: string }>(
    `SELECT message_id, tenant_id, artifacts #>> '{0,parts,0,text}' AS answer FROM messages WHERE instance_id = $1`,
    [agent.instance],
  );
  const written = new Map(rows.map((row) => [row.message_id, row]));
  expect(sent.map(({ message_id }) => written.get(message_id)?.answer)).toEqual(
    sent.map((_, place) => `answer ${place}`),
  );
  expect(sent.map(({ message_id }) => written.get(message_id)?.tenant_id)).toEqual(
    sent.map(({ tenant_id }) => tenant_id),
  );
});

test('a repeat beside its first is the same message, other content is refused', async () => {
  const [first, repeat, other] = await Promise.all([
    accept(agent.instance),
    accept(agent.instance),
    accept(agent.instance, { text: 'other' }),
  ]);
  expect([first, repeat, other].map(({ verdict }) => verdict)).toEqual(['dispatched', 'repeat', 'mismatch']);
  expect(repeat.message_id).toBe(first.message_id);
});

test.each([
  ['it is refused', 'repeat', { counting: { ...UNCOUNTED, refused: true } }],
  ['too many messages wait', 'repeat', { counting: { ...UNCOUNTED, waiting_full: true } }],
  ['nobody is there for its content', 'mismatch', { agentType: 'nobody' }],
] as const)('beside its first a message is found by its key also where %s', async (_what, verdict, options) => {
  const agentType = `only-${agent.instance}`;
  await insert(agentType, { agent_type: agentType });
  const all = await Promise.all(
    names(20).flatMap((name) => [accept(name, { agentType }), accept(name, { agentType, ...options })]),
  );
  const expected = Array.from({ length: 20 }, () => ['dispatched', verdict]);
  expect(all.map(({ verdict }) => verdict)).toEqual(expected.flat());
});

test('each message of a transaction gets what becomes of it, whatever becomes of the others', async () => {
  const [only, narrow] = [`only-${agent.instance}`, `narrow-${agent.instance}`];
  await insert(only, { agent_type: only });
  await insert(narrow, { agent_type: narrow, max_concurrent_sessions: 2 });
  const known = await accept(`${agent.instance}-known`, { agentType: only });
  const wishes: [string, Parameters<typeof accept>[1], string][] = names(60).map((name, place) => {
    if (place % 10 === 3) return [`${agent.instance}-known`, { agentType: only }, 'repeat'];
    if (place % 10 === 5) return [name, { agentType: 'nobody' }, 'target_unknown'];
    if (place % 10 === 7) return [name, { agentType: only, contextId: known.session_id }, 'dispatched'];
    if (place % 20 === 9) return [name, { agentType: narrow }, place < 40 ? 'dispatched' : 'queued'];
    return [name, { agentType: only }, 'dispatched'];
  });
  let sent: Sent[] = [];
  const transactions = await transactionsOf(async () => {
    sent = await Promise.all(wishes.map(([name, options]) => accept(name, options)));
  });
  expect(transactions).toBeLessThan(20);
  expect(sent.map(({ verdict }) => verdict)).toEqual(wishes.map(([, , verdict]) => verdict));
  const written = sent.filter(({ verdict }) => ['dispatched', 'queued'].includes(verdict));
  expect(written.map(({ message_id }) => message_id)).toEqual(written.map(({ newId }) => newId));
  expect(sent.filter(({ verdict }) => verdict === 'repeat').map(({ message_id }) => message_id)).toEqual(
    Array.from({ length: 6 }, () => known.message_id),
  );
  const [rows] = await database.query(
    `SELECT count(*)::int AS messages, count(*) FILTER (WHERE r.state = 'working' AND r.instance_id = $2)::int AS narrow,
            count(DISTINCT r.session_id)::int AS sessions
       FROM running_messages r WHERE r.want_agent_type = ANY (ARRAY[$1, $2])`,
    [only, narrow],
  );
  expect(rows).toEqual({ messages: written.length + 1, narrow: 2, sessions: written.length + 1 - 6 });
  // Results of all, two of which another has brought already, in the same transactions.
  const [first] = written;
  const ends = await Promise.all(
    [known, ...written, known, first as typeof known].map((message) =>
      dispatches.end(message, { state: 'completed' }, 1),
    ),
  );
  const ended = [known, ...written].map(({ verdict }) => (verdict === 'queued' ? undefined : 'completed'));
  expect(ends.map((end) => end?.state)).toEqual([...ended, undefined, undefined]);
});

test('a session that a message resumes is counted again, and the load of its agent is recorded', async () => {
  const sessions = names(3).map((name) => `ses_${name}`);
  await database.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, reserves, suspended, status, idle_timeout_seconds, instance_id, agent_type)
       SELECT $1, session, true, true, true, 'active', 60, $2, 'worker' FROM unnest($3::text[]) AS session`,
    [one.tenantId, agent.instance, sessions],
  );
  const all = await Promise.all(sessions.map((contextId) => accept(contextId, { contextId })));
  expect(all.map(({ verdict }) => verdict)).toEqual(sessions.map(() => 'dispatched'));
  const recorded = await database.query(
    `SELECT (payload ->> 'current_sessions')::int AS sessions FROM events
      WHERE event_type = 'agent.capacity_changed' AND payload ->> 'instance_id' = $1 ORDER BY 1`,
    [agent.instance],
  );
  expect(recorded).toEqual([{ sessions: 1 }, { sessions: 2 }, { sessions: 3 }]);
});

test('one that the database cannot take fails alone', async () => {
  const all = await Promise.allSettled(
    names(9).map((name, place) => accept(name, place === 4 ? { text: '\u0000' } : {})),
  );
  expect(all.map(({ status }) => status)).toEqual(all.map((_, place) => (place === 4 ? 'rejected' : 'fulfilled')));
});

test('an end of another epoch is refused alone', async () => {
  const sent = await Promise.all(names(8).map((name) => accept(name)));
  const ends = await Promise.all(
    sent.map((message, place) => dispatches.end(message, { state: 'completed' }, place === 3 ? 2 : 1)),
  );
  expect(ends.map((found) => found?.state)).toEqual(ends.map((_, place) => (place === 3 ? undefined : 'completed')));
});

test.each([
  [
    'its time is over',
    "UPDATE idempotency_keys SET expires_at = now() - interval '1 s' WHERE 'msg_' || message_id = $1",
  ],
  ['its message is deleted', 'DELETE FROM messages WHERE message_id = $1'],
])('a messageId is new once %s', async (_what, change) => {
  const first = await accept(agent.instance);
  await database.query(change, [first.message_id]);
  const second = await accept(agent.instance, { text: 'other' });
  expect([first, second].map(({ verdict }) => verdict)).toEqual(['dispatched', 'dispatched']);
  expect(await accept(agent.instance, { text: 'other' })).toMatchObject({
    verdict: 'repeat',
    message_id: second.message_id,
  });
});

test('a message with a hook is accepted as one without: its node has the agent whole, or the name of a queue', async () => {
  const auth = Buffer.from([1, 2, 3]);
  const type = `${agent.instance}-keyed`;
  const columns = { agent_type: type, public_url: 'https://agent.example', dispatch_auth: auth };
  await insert(type, columns);
  const draft = (hook?: AcceptHook) => {
    const params = { message: textMessage('hello', { messageId: newId('req') }), metadata: { agent_type: type } };
    return { ...draftOf(one.caller, params, { method: 'message/send' }), hook };
  };
  const rowOf = (hook: AcceptHook | undefined, isSent: boolean) => {
    const offer: DispatchOffer = { reaches_nodes: false, ...(isSent && { dispatch_id: newId('dsp'), mesh_id: MESH }) };
    return runAcceptTransaction(one.core.db, draft(hook), { counting: UNCOUNTED, offer, idempotencyHours: 1 });
  };
  const own = { message_id: '', session_id: '', accepted_at: null, queue: null };
  for (const isSent of [true, false]) {
    const [plain, hooked] = [await rowOf(undefined, isSent), await rowOf(async () => undefined, isSent)];
    expect({ ...hooked, ...own }).toEqual({ ...plain, ...own });
    expect(hooked.dispatch_auth).toEqual(isSent ? auth.toString('hex') : null);
  }
});
