import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { lockAgent } from '../../agents/agents.js';
import { deregisterAgents } from '../../agents/registration.js';
import { sessionDeps } from '../../messages/cancel.js';
import type { MessageRef } from '../../messages/core.js';
import { failByOperator } from '../../messages/supervise/next-step.js';
import { expireIfIdle } from '../../sessions/session-end.js';
import { holdToolCall } from '../../tools/approvals/tool-grants.js';
import { testAuthor } from '../setup/author.js';
import { freshDatabase } from '../setup/database.js';
import { MESH, RecordFixture, type Sent } from '../setup/record-fixture.js';

const database = await freshDatabase();
const fixture = new RecordFixture(database);
const { core, gateway, sessions } = fixture;
const WORKER = { agent_type: 'worker' };
const AT_CAPACITY = { code: 'AGENT_AT_CAPACITY' };
const VERDICT = {
  decision: 'require_approval' as const,
  by: { source: 'policy' as const, policy_id: 'pol_1', name: 'careful', reason: 'It costs money.' },
  audits: [],
};
const TERMS = { approvers: [], quorum: 1, timeout_seconds: 86_400, allow_self: true, on_reject: 'fail' as const };
/** The agent `x` serves one session at a time. */
beforeEach(async () => {
  await fixture.reset();
  await fixture.agent('x');
});

const kinds = async (...refs: MessageRef[]) => Promise.all(refs.map((ref) => fixture.kind(ref)));

/** A message of the session that has asked a human. Its session does not count on the agent meanwhile. */
async function asking(session?: string): Promise<Sent> {
  const message = await fixture.queue(WORKER, session);
  await fixture.answer(message, 'input-required');
  return message;
}

/** A message of a session from `/sessions/init` that has asked a human, and another session that has the room since. */
async function askingWithoutRoom(): Promise<{ session: string; message: Sent; other: string }> {
  const session = await fixture.open();
  const message = await asking(session);
  expect(await fixture.load('x')).toBe(0);
  return { session, message, other: await fixture.open() };
}

test('a session whose question is withdrawn does not push its agent over its bound', async () => {
  const { session, message, other } = await askingWithoutRoom();
  await gateway.cancel(fixture.caller, message.message_id, 'test');
  expect(await fixture.load('x')).toBe(1);
  const next = await fixture.queue({}, session);
  expect(await fixture.kind(next)).toBe('room');
  await sessions.close(fixture.caller, other);
  expect(await fixture.kind(next)).toBe('result');
  expect(await fixture.load('x')).toBe(1);
});

test('while a question waits, further messages of the session are sent at once, in the room that is free', async () => {
  const session = await fixture.open();
  await asking(session);
  expect((await fixture.send({}, { contextId: session })).verdict).toBe('dispatched');
  expect(await fixture.load('x')).toBe(1);
  await expect(fixture.open()).rejects.toMatchObject(AT_CAPACITY);
});

test('while a question waits and the room is taken, further messages of the session wait', async () => {
  const { session } = await askingWithoutRoom();
  expect((await fixture.send({}, { contextId: session })).verdict).toBe('queued');
  expect(await fixture.load('x')).toBe(1);
});

test('work for another agent does not count a suspended session on its own again', async () => {
  await fixture.agent('y', { agent_type: 'y' });
  const { session, message, other } = await askingWithoutRoom();
  expect(await fixture.kind(await fixture.queue({ agent_type: 'y' }, session))).toBe('result');
  expect([await fixture.load('x'), await fixture.load('y')]).toEqual([1, 1]);
  await fixture.confirm(message);
  expect(await fixture.kind(message)).toBe('room');
  await sessions.close(fixture.caller, other);
  expect(await fixture.kind(message)).toBe('result');
});

test('a decision waits for its instance ahead of new work, as long as its request was open', async () => {
  const message = await asking(await fixture.open());
  const running = await fixture.queue(WORKER);
  expect(await fixture.kind(running)).toBe('result');
  const earlier = await fixture.waiting(WORKER);
  await fixture.confirm(message);
  expect(await fixture.kind(message)).toBe('room');
  await fixture.answer(running);
  expect(await fixture.takes('x')).toEqual([message.message_id]);
  await expect(fixture.open()).rejects.toMatchObject(AT_CAPACITY);
  expect(await kinds(earlier, await fixture.queue())).toEqual(['room', 'room']);
});

test('the decision of a session that lost its slot waits for the lifetime of its request, other messages for less', async () => {
  const { message } = await askingWithoutRoom();
  await fixture.confirm(message);
  expect(await fixture.kind(message)).toBe('room');
  const other = await fixture.waiting(WORKER);
  const given = { kind: 'done', state: 'failed', error: { code: 'TARGET_UNAVAILABLE' } };
  expect(await fixture.look(other, 601_000)).toMatchObject(given);
  expect(await fixture.look(message, 3_500_000)).toMatchObject({ kind: 'room', wait_ms: expect.closeTo(100_000, -4) });
  expect(await fixture.look(message, 3_660_000)).toMatchObject({ kind: 'done', state: 'failed' });
});

test('a decision for another instance is left alone, unless that one is gone', async () => {
  const { message } = await askingWithoutRoom();
  await fixture.confirm(message);
  expect(await fixture.kind(message)).toBe('room');
  await fixture.agent('b');
  expect(await fixture.takes('b')).toEqual([]);
  await fixture.setAgents("status = CASE instance_id WHEN 'x' THEN 'unhealthy' ELSE status END");
  expect(await fixture.takes('b')).toEqual([message.message_id]);
});

test('conversations that reserve nothing count on their agent only while a message of theirs is with it', async () => {
  const idle = [];
  for (let n = 0; n < 3; n += 1) idle.push(await fixture.open('worker', false, false));
  expect(await fixture.load('x')).toBe(0);
  const [first, second] = idle as [string, string];
  const sent = await fixture.send({}, { contextId: first });
  expect(sent).toMatchObject({ verdict: 'dispatched', to: 'x' });
  expect(await fixture.load('x')).toBe(1);
  expect((await fixture.send({}, { contextId: second })).verdict).toBe('queued');
  await fixture.answer(sent);
  expect(await fixture.load('x')).toBe(0);
});

describe('max_concurrent_tasks', () => {
  const Y = { agent_type: 'y' };
  beforeEach(() => fixture.agent('y', { ...Y, max_concurrent_sessions: 0, max_concurrent_tasks: 2 }));

  test('bounds the messages of an instance, over all its sessions and within each', async () => {
    const first = await fixture.send(Y);
    const second = await fixture.send({}, { contextId: first.session_id });
    const third = await fixture.send({}, { contextId: first.session_id });
    const fourth = await fixture.send(Y);
    expect([first, second, third, fourth].map(({ verdict }) => verdict)).toEqual([
      ...['dispatched', 'dispatched', 'queued', 'queued'],
    ]);
    expect(await kinds(third, fourth)).toEqual(['room', 'room']);
    await fixture.answer(first);
    expect([await fixture.kind(third), await fixture.kind(fourth)]).toEqual(['result', 'room']);
    await fixture.answer(second, 'input-required');
    expect(await fixture.kind(fourth)).toBe('result');
    await fixture.confirm(second);
    expect(await fixture.kind(second)).toBe('room');
  });

  test('a dispatch whose tool call is held keeps its place', async () => {
    const held = await fixture.send(Y);
    await fixture.send(Y);
    await holdToolCall(core.db, {
      ...{ dispatch: held, meshId: MESH, useId: randomUUID(), tool: 'pay', arguments: {}, target: null },
      ...{
        executor: { type: 'agent' as const, id: 'bank' },
        policyRequest: { scope: 'tool', action: 'call', tool: 'pay' },
      },
      ...{ verdict: { ...VERDICT, terms: TERMS }, stored: { payload: { tool: 'pay' }, deadline_ms: 1_000 } },
    });
    expect((await fixture.send(Y)).verdict).toBe('queued');
  });

  test('keeps no session from reserving its place', async () => {
    await fixture.setAgents('max_concurrent_sessions = 3');
    const { session_id } = await fixture.send(Y);
    await fixture.send({}, { contextId: session_id });
    await fixture.open('y');
    expect(await fixture.load('y')).toBe(2);
  });

  test('and the bound on sessions hold side by side', async () => {
    await fixture.setAgents('max_concurrent_sessions = 1');
    const { session_id } = await fixture.send(Y);
    expect((await fixture.send(Y)).verdict).toBe('queued');
    const second = await fixture.send({}, { contextId: session_id });
    await fixture.send({}, { contextId: session_id });
    expect(await fixture.takes('y', 4)).toEqual([second.message_id]);
  });
});

test('a session is counted again when its instance comes back after a deregistration', async () => {
  const session = await fixture.open();
  await core.db.tenant(fixture.tenantId, async (tx) => {
    const row = await lockAgent(tx, fixture.tenantId, 'x');
    if (row)
      await deregisterAgents(tx, row.tenant_id, [row], {
        cause: 'explicit',
        reason: 'test',
        author: testAuthor(row.tenant_id),
      });
  });
  expect(await fixture.load('x')).toBe(0);
  await fixture.setAgents("status = 'available', deregistered_at = NULL, mesh_id = 'mesh_1'");
  await fixture.answer(await fixture.queue({}, session));
  expect(await fixture.load('x')).toBe(1);
});

test('eighty agents of a type share the messages', async () => {
  await database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, public_url, status, max_concurrent_sessions)
     SELECT $1, 'many' || n, 'many', 'hosted', 'http://192.0.2.1/', 'available', 2 FROM generate_series(1, 80) AS n`,
    [fixture.tenantId],
  );
  await fixture.open('many');
  for (let sent = 0; sent < 60; sent += 1)
    expect((await fixture.send({ agent_type: 'many' })).verdict).toBe('dispatched');
  const loads = await database.column<number>(
    "SELECT agent_load(tenant_id, instance_id) FROM agents WHERE tenant_id = $1 AND agent_type = 'many'",
    [fixture.tenantId],
  );
  expect(loads.reduce((sum, load) => sum + load, 0)).toBe(61);
  expect(loads.filter((load) => load > 0).length).toBeGreaterThan(45);
});

test('only freed room is taken, and only by who waits for it', async () => {
  for (const type of ['y', 'z']) await fixture.agent(type, { agent_type: type });
  const running = await fixture.queue(WORKER);
  await fixture.dispatched(running);
  const waiting = await fixture.waiting(WORKER);
  await fixture.open('z');
  await fixture.waiting({ agent_type: 'z' });
  expect([await fixture.takes('x'), await fixture.takes('y'), await fixture.takes('z')]).toEqual([[], [], []]);
  await fixture.answer(running);
  expect(await fixture.takes('x')).toEqual([waiting.message_id]);
});

test.each([
  ['a cancel', ({ message_id }: Sent) => gateway.cancel(fixture.caller, message_id, 'test')],
  ['an interrupt', ({ session_id }: Sent) => sessions.interrupt(fixture.caller, [session_id])],
  ['the end of its session', ({ session_id }: Sent) => sessions.close(fixture.caller, session_id)],
  [
    'its workflow that was ended',
    (ref: Sent) => failByOperator(core, ref, { code: 'INTERNAL', message: 'terminated' }),
  ],
])('the slot that %s frees goes to the decision that waits for it', async (_, end) => {
  const message = await asking();
  const running = await fixture.queue(WORKER);
  expect(await fixture.kind(running)).toBe('result');
  await fixture.confirm(message);
  expect(await fixture.kind(message)).toBe('room');
  fixture.filled = [];
  await end(running);
  expect(fixture.filled).toContain('x');
  expect(await fixture.takes('x')).toEqual([message.message_id]);
});

test.each([
  ['closed', (session_id: string) => sessions.close(fixture.caller, session_id)],
  ['left idle', (session_id: string) => expireIfIdle(sessionDeps(core), { tenant_id: fixture.tenantId, session_id })],
])('a session from /sessions/init that is %s gives its slot to who waits', async (_, end) => {
  const session = await fixture.open();
  const waiting = await fixture.waiting(WORKER);
  await database.query(
    `UPDATE sessions SET created_at = now() - interval '1 hour', idle_timeout_seconds = 60 WHERE session_id = $1`,
    [session],
  );
  fixture.filled = [];
  await end(session);
  expect(fixture.filled).toEqual(['x']);
  expect(await fixture.takes('x')).toEqual([waiting.message_id]);
});

test('many sessions at once take what there is, and no more', async () => {
  const types = ['a', 'b', 'c'];
  for (const type of types) await fixture.agent(type, { agent_type: type, max_concurrent_sessions: 4 });
  const results = await Promise.allSettled(Array.from({ length: 40 }, (_, n) => fixture.open(types[n % 3])));
  const refused = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason.code)] : []));
  expect([refused.length, new Set(refused)]).toEqual([28, new Set(['AGENT_AT_CAPACITY'])]);
  expect(await Promise.all(types.map((type) => fixture.load(type)))).toEqual([4, 4, 4]);
});
