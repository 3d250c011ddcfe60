import { beforeEach, expect, test } from 'vitest';
import { lockAgent } from '../../agents/agents.js';
import { deregisterAgent } from '../../agents/registration.js';
import type { Caller } from '../../contracts/api/auth.js';
import { runAcceptTransaction, UNCOUNTED } from '../../messages/accept/accept-transaction.js';
import { draftOf } from '../../messages/accept/draft.js';
import { sessionDeps } from '../../messages/cancel.js';
import type { MessageRef } from '../../messages/core.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import { failByOperator, nextStep } from '../../messages/supervise/next-step.js';
import type { Step } from '../../messages/supervise/step.js';
import { newId } from '../../runtime/ids.js';
import { expireIfIdle } from '../../sessions/session-end.js';
import { createSessions } from '../../sessions/sessions.js';
import { callerOf, insertAgent, insertTenant, messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { createGateway } from '../setup/gateway.js';

const database = await freshDatabase();
let caller: Caller;
let called: string[];
const core = messageCore(database.db(), {
  workflowStarter: { message: ({ message_id }) => called.push(message_id), session: () => undefined },
});
const sessions = createSessions(sessionDeps(core));
const gateway = createGateway(core);
const dispatches = createDispatches(core);
beforeEach(async () => {
  called = [];
  caller = callerOf(await insertTenant(database));
});

function agent(agent_type: string, max_concurrent_sessions: number, instance_id = agent_type): Promise<void> {
  const row = { tenant_id: caller.tenant_id, instance_id, agent_type, max_concurrent_sessions };
  return insertAgent(database, { ...row, public_url: 'http://192.0.2.1/' });
}

async function load(instance: string): Promise<number> {
  const [row] = await database.query<{ load: number }>('SELECT agent_load($1, $2) AS load', [
    caller.tenant_id,
    instance,
  ]);
  return row?.load ?? -1;
}

async function open(type: string): Promise<string> {
  return (await sessions.init(caller, { agent_type: type, idle_timeout_seconds: 0 })).session.session_id;
}

async function send(contextId: string | undefined, metadata: Record<string, unknown> = {}): Promise<MessageRef> {
  const part = { kind: 'text' as const, text: 'hello' };
  const message = {
    kind: 'message' as const,
    messageId: newId('req'),
    role: 'user' as const,
    parts: [part],
    contextId,
  };
  const { message_id } = await gateway.accept(caller, { message, metadata }, { method: 'message/send' });
  return { tenant_id: caller.tenant_id, message_id };
}

async function kind(ref: MessageRef): Promise<Step['kind'] | undefined> {
  return (await nextStep(core, ref))?.kind;
}

async function sessionOf({ message_id }: MessageRef): Promise<string> {
  return (await gateway.get(caller, message_id)).session_id;
}

/** Carries the message out up to the agent's answer. */
async function answer(ref: MessageRef, state: 'completed' | 'input-required'): Promise<void> {
  const step = await nextStep(core, ref);
  if (step?.kind !== 'dispatch') throw new Error(`nothing to answer: ${step?.kind}`);
  const dispatch = { ...ref, dispatch_id: step.dispatch_id };
  const sent = await dispatches.markSent(dispatch, { mesh_id: 'mesh_1', epoch: 0 });
  if (!sent) throw new Error('not sent');
  const input = state === 'input-required' ? { input_request: { title: 'Go on?' } } : {};
  expect(await dispatches.end(sent, { state, artifacts: [], ...input }, 0)).not.toBeNull();
}

/** Accepts a message of the session as a node that reaches every agent. @returns the verdict */
async function acceptOnFastPath(contextId: string): Promise<string> {
  const parts = [{ kind: 'text' as const, text: 'meanwhile' }];
  const message = { kind: 'message' as const, messageId: newId('req'), role: 'user' as const, parts, contextId };
  const offer = { dispatch_id: newId('dsp'), mesh_id: 'mesh_1', any_mesh: false };
  const draft = draftOf(caller, { message }, { method: 'message/send' });
  return (await runAcceptTransaction(core.db, draft, { counting: UNCOUNTED, offer, idempotencyHours: 1 })).verdict;
}

test('a session whose question is withdrawn does not push its agent over its bound', async () => {
  await agent('x', 1);
  const first = await open('x');
  const asking = await send(first);
  await answer(asking, 'input-required');
  expect(await load('x')).toBe(0);
  const second = await open('x');
  await gateway.cancel(caller, asking.message_id, 'test');
  expect(await load('x')).toBe(1);
  const next = await send(first);
  expect(await kind(next)).toBe('wait_agent');
  await sessions.close(caller, second);
  expect(await kind(next)).toBe('dispatch');
  expect(await load('x')).toBe(1);
});

test('while a question waits, further messages of the session take the fast path, in the room that is free', async () => {
  await agent('x', 1);
  const session = await open('x');
  const asking = await send(session);
  await answer(asking, 'input-required');
  expect(await acceptOnFastPath(session)).toBe('dispatched');
  expect(await load('x')).toBe(1);
  await expect(open('x')).rejects.toMatchObject({ code: 'AGENT_AT_CAPACITY' });
});

test('while a question waits and the room is taken, further messages of the session wait', async () => {
  await agent('x', 1);
  const session = await open('x');
  await answer(await send(session), 'input-required');
  await open('x');
  expect(await acceptOnFastPath(session)).toBe('accepted');
  expect(await load('x')).toBe(1);
});

test('work for another agent does not count a suspended session on its own again', async () => {
  await agent('x', 1);
  await agent('y', 1);
  const session = await open('x');
  const asking = await send(session);
  await answer(asking, 'input-required');
  const other = await open('x');
  expect(await kind(await send(session, { agent_type: 'y' }))).toBe('dispatch');
  expect([await load('x'), await load('y')]).toEqual([1, 1]);
  await gateway.resolve(caller, asking.message_id, { resolution: 'confirmed' });
  expect(await kind(asking)).toBe('wait_agent');
  await sessions.close(caller, other);
  expect(await kind(asking)).toBe('dispatch');
});

test('a decision waits for its instance ahead of new work, as long as its request was open', async () => {
  await agent('x', 1);
  const paused = await open('x');
  const asking = await send(paused);
  await answer(asking, 'input-required');
  const running = await send(undefined, { agent_type: 'x' });
  expect(await kind(running)).toBe('dispatch');
  const earlier = await send(undefined, { agent_type: 'x' });
  expect(await kind(earlier)).toBe('wait_agent');
  await gateway.resolve(caller, asking.message_id, { resolution: 'confirmed' });
  expect(await kind(asking)).toBe('wait_agent');
  called = [];
  await answer(running, 'completed');
  expect(called).toEqual([asking.message_id]);
  expect([await kind(earlier), await kind(await send(undefined))]).toEqual(['wait_agent', 'wait_agent']);
  await expect(open('x')).rejects.toMatchObject({ code: 'AGENT_AT_CAPACITY' });
  expect(await kind(asking)).toBe('dispatch');
});

test('the decision of a session that lost its slot waits for the lifetime of its request, other messages for less', async () => {
  await agent('x', 1);
  const asking = await send(await open('x'));
  await answer(asking, 'input-required');
  await open('x');
  await gateway.resolve(caller, asking.message_id, { resolution: 'confirmed' });
  const other = await send(undefined, { agent_type: 'x' });
  expect([await kind(asking), await kind(other)]).toEqual(['wait_agent', 'wait_agent']);
  const later = (ms: number) => () => new Date(Date.now() + ms);
  expect(await nextStep(core, other, later(61_000))).toMatchObject({
    kind: 'done',
    state: 'failed',
    error: { code: 'TARGET_UNAVAILABLE' },
  });
  expect(await nextStep(core, asking, later(3_500_000))).toMatchObject({ kind: 'wait_agent', retry_ms: 60_000 });
  expect(await nextStep(core, asking, later(3_660_000))).toMatchObject({ kind: 'done', state: 'failed' });
});

test('a decision for another instance is left alone, unless that one is gone', async () => {
  await agent('pair', 1, 'a');
  const asking = await send(await open('pair'));
  await answer(asking, 'input-required');
  await open('pair');
  await gateway.resolve(caller, asking.message_id, { resolution: 'confirmed' });
  expect(await kind(asking)).toBe('wait_agent');
  await agent('pair', 1, 'b');
  called = [];
  await dispatches.agentJoined(caller.tenant_id, { agent_type: 'pair', instance_id: 'b' });
  expect(called).toEqual([]);
  await database.query(`UPDATE agents SET status = 'unhealthy' WHERE tenant_id = $1 AND instance_id = 'a'`, [
    caller.tenant_id,
  ]);
  await dispatches.agentJoined(caller.tenant_id, { agent_type: 'pair', instance_id: 'b' });
  expect(called).toEqual([asking.message_id]);
  expect(await nextStep(core, asking)).toMatchObject({ kind: 'dispatch', instance_id: 'b' });
});

test('a second message of a session needs no second slot', async () => {
  await agent('x', 1);
  const first = await send(undefined);
  expect(await kind(first)).toBe('dispatch');
  const { session_id } = await gateway.get(caller, first.message_id);
  expect(await kind(await send(session_id))).toBe('dispatch');
  expect(await load('x')).toBe(1);
  expect(await kind(await send(undefined))).toBe('wait_agent');
});

test('a session is counted again when its instance comes back after a deregistration', async () => {
  await agent('x', 1);
  const session = await open('x');
  await core.db.tenant(caller.tenant_id, async (tx) => {
    const row = await lockAgent(tx, caller.tenant_id, 'x');
    if (row) await deregisterAgent(tx, row, { cause: 'explicit', reason: 'test' });
  });
  expect(await load('x')).toBe(0);
  await database.query(`UPDATE agents SET status = 'available', deregistered_at = NULL WHERE tenant_id = $1`, [
    caller.tenant_id,
  ]);
  await answer(await send(session), 'completed');
  expect(await load('x')).toBe(1);
});

test('full agents never hide a free one, however many they are', async () => {
  for (let n = 0; n < 60; n += 1) {
    await agent('x', 1, `full-${n}`);
    await open('x');
  }
  await agent('x', 100, 'free');
  await open('x');
  await open('x');
  const step = await nextStep(core, await send(undefined));
  expect(step).toMatchObject({ kind: 'dispatch', instance_id: 'free' });
});

test('eighty agents of a type share the messages, and the only free one of eighty is found', async () => {
  await database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, public_url, status, max_concurrent_sessions)
     SELECT $1, type || n, type, 'hosted', 'http://192.0.2.1/', CASE WHEN type = 'x' OR n = 40 THEN 'available' ELSE 'busy' END, 2
       FROM unnest($2::text[]) AS type, generate_series(1, 80) AS n`,
    [caller.tenant_id, ['x', 'z']],
  );
  const session = await open('x');
  for (let sent = 0; sent < 60; sent += 1) {
    const step = await nextStep(core, await send(undefined, { agent_type: 'x' }));
    expect(step?.kind).toBe('dispatch');
  }
  const loads = await database.query<{ load: number }>(
    "SELECT agent_load(tenant_id, instance_id) AS load FROM agents WHERE tenant_id = $1 AND agent_type = 'x'",
    [caller.tenant_id],
  );
  expect(loads.reduce((sum, { load: one }) => sum + one, 0)).toBe(61);
  expect(loads.filter(({ load: one }) => one > 0).length).toBeGreaterThan(45);
  await sessions.close(caller, session);
  const step = await nextStep(core, await send(undefined, { agent_type: 'z' }));
  expect(step).toMatchObject({ kind: 'dispatch', instance_id: 'z40' });
});

test('only freed room calls who waits, and only who could use it', async () => {
  await agent('x', 1);
  await agent('y', 1);
  const running = await send(undefined, { agent_type: 'x' });
  const step = await nextStep(core, running);
  const waiting = await send(undefined, { agent_type: 'x' });
  await agent('z', 1);
  await open('z');
  const elsewhere = await send(undefined, { agent_type: 'z' });
  expect([await kind(waiting), await kind(elsewhere)]).toEqual(['wait_agent', 'wait_agent']);
  called = [];
  if (step?.kind !== 'dispatch') throw new Error('nothing to take back');
  await dispatches.release({ ...running, dispatch_id: step.dispatch_id }, 'AGENT_BUSY');
  expect(called).toEqual([]);
  await answer(running, 'completed');
  expect(called).toEqual([waiting.message_id]);
});

test.each([
  ['a cancel', (ref: MessageRef) => gateway.cancel(caller, ref.message_id, 'test')],
  ['an interrupt', async (ref: MessageRef) => sessions.interrupt(caller, [await sessionOf(ref)])],
  ['the end of its session', async (ref: MessageRef) => sessions.close(caller, await sessionOf(ref))],
  [
    'its workflow that was ended',
    (ref: MessageRef) => failByOperator(core, ref, { code: 'INTERNAL', message: 'terminated' }),
  ],
])('the slot that %s frees goes to the decision that waits for it', async (_, end) => {
  await agent('x', 1);
  const asking = await send(undefined, { agent_type: 'x' });
  await answer(asking, 'input-required');
  const running = await send(undefined, { agent_type: 'x' });
  expect(await kind(running)).toBe('dispatch');
  await gateway.resolve(caller, asking.message_id, { resolution: 'confirmed' });
  expect(await kind(asking)).toBe('wait_agent');
  called = [];
  await end(running);
  expect(called).toContain(asking.message_id);
});

test.each([
  ['closed', (session_id: string) => sessions.close(caller, session_id)],
  ['left idle', (session_id: string) => expireIfIdle(sessionDeps(core), { tenant_id: caller.tenant_id, session_id })],
])('a session from /sessions/init that is %s gives its slot to who waits', async (_, end) => {
  await agent('x', 1);
  const session = await open('x');
  const waiting = await send(undefined, { agent_type: 'x' });
  expect(await kind(waiting)).toBe('wait_agent');
  await database.query(
    `UPDATE sessions SET created_at = now() - interval '1 hour', idle_timeout_seconds = 60 WHERE session_id = $1`,
    [session],
  );
  called = [];
  await end(session);
  expect(called).toEqual([waiting.message_id]);
});

test('many sessions at once take what there is, and no more', async () => {
  for (const type of ['a', 'b', 'c']) await agent(type, 4);
  const results = await Promise.allSettled(Array.from({ length: 40 }, (_, n) => open(['a', 'b', 'c'][n % 3] ?? 'a')));
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(12);
  const refusals = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason.code)] : []));
  expect(new Set(refusals)).toEqual(new Set(['AGENT_AT_CAPACITY']));
  expect([await load('a'), await load('b'), await load('c')]).toEqual([4, 4, 4]);
});
