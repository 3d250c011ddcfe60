import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { DispatchRef } from '../../../messages/dispatch/dispatches.js';
import { uuidOf } from '../../../runtime/ids.js';
import { createLogger } from '../../../runtime/logger.js';
import { returnToolGrant, useToolGrant } from '../../../tools/approvals/tool-grants.js';
import { ToolCallService } from '../../../tools/tool-call-service.js';
import { createLocalLink } from '../../../tools/tool-link.js';
import { until } from '../../setup/until.js';
import { errorOf, type FixtureAgent, receive } from '../fixture-agent.js';
import { database, fixture } from '../use-mesh.js';
import { approvals, b, heldCallOf, node, pays, policyAboutPay, usePayments } from './approval-fixture.js';
import { answeredCall, ask, callTool, ok, refusedWith, resultOf, take } from './tool-fixture.js';

usePayments('pay');

const holding = ({ dispatch_id }: DispatchRef) => ({ inflight: [{ dispatch_id, last_seq: -1 }] });

/** A dispatch to `a` that has called `pay`, about which a human is asked. */
async function heldCall(on = node) {
  const { agent, welcome } = await on.join('a');
  return { ...(await heldCallOf(agent, on)), agent, resume_token: welcome.resume_token };
}

/** The agent comes back without its token: its dispatch is lost. @returns its new connection */
async function loseDispatch({ ref }: { ref: DispatchRef }): Promise<FixtureAgent> {
  const { agent } = await node.join('a');
  await until(async () => (await approvals.dispatch(ref)).state === 'lost');
  return agent;
}

/** The next dispatch of the message, once `agent` has it. */
async function nextDispatch(ref: DispatchRef, agent: FixtureAgent) {
  const next = await fixture.nextDispatch(ref);
  const end = node.run(next);
  const dispatch = await receive(agent, next);
  const payload = { tool: 'pay', arguments: { amount: 5 }, dispatch_id: next.dispatch_id };
  return { next, end, dispatch, payload, metadata: dispatch.payload.params.metadata ?? {} };
}

describe('the decision about a tool call', () => {
  it('reaches an agent that was away and resumes: the call is made meanwhile', async () => {
    const { ref, agent, id, end, dispatch, resume_token } = await heldCall();
    agent.kill();
    await until(() => node.server.stats().suspended === 1);
    await approvals.resolve(ref, 'approved');
    (await take(b, 'pay')).result(ok('paid'));
    const back = await node.join('a', { resume_token, ...holding(ref) });
    expect(back.welcome.resumed).toBe(true);
    expect(await resultOf(back.agent, id)).toEqual(ok('paid'));
    back.agent.send('dispatch_result', { result: 'done' }, dispatch.frame.id);
    expect(await end).toMatchObject({ final: 'completed' });
  });

  it('may come after the agent has resumed', async () => {
    const { ref, agent, id, resume_token } = await heldCall();
    agent.kill();
    const back = await node.join('a', { resume_token, ...holding(ref) });
    await approvals.resolve(ref, 'approved');
    await pays(b, back.agent, id);
  });

  it('goes to the node where the agent resumes after its own has stopped', async () => {
    const stopping = await fixture.node();
    const { ref, agent, id, resume_token } = await heldCall(stopping);
    await Promise.all([stopping.server.drain(50), stopping.runner.drain(50)]);
    await agent.closed;
    expect((await fixture.message(ref)).state).toBe('input-required');
    const back = await node.join('a', { resume_token, ...holding(ref) });
    expect(back.welcome.resumed).toBe(true);
    await approvals.resolve(ref, 'approved');
    await pays(b, back.agent, id);
    back.agent.send('dispatch_result', { result: 'done' }, uuidOf(ref.dispatch_id));
    expect(await approvals.ended(ref)).toMatchObject({ state: 'completed', assistant_output: 'done' });
  });

  it.each([
    ['rejected', 'APPROVAL_REJECTED'],
    ['approved', 'AGENT_DISCONNECTED'],
  ])('is answered by the next node where its result did not reach the agent: %s', async (word, code) => {
    await policyAboutPay('require_approval', { priority: 1, approval: { on_reject: 'tell_agent' } });
    const stopping = await fixture.node();
    const { agent: teller } = await stopping.join('b', { tools: ['pay'] });
    const { ref, agent, id, resume_token } = await heldCall(stopping);
    agent.kill();
    await until(() => stopping.server.stats().suspended === 1);
    await approvals.resolve(ref, word);
    if (word === 'approved') await take(teller, 'pay');
    const used = () =>
      database.query('SELECT 1 FROM tool_grants WHERE message_id = $1 AND used_at IS NOT NULL', [ref.message_id]);
    await until(async () => (await used()).length === 1);
    await Promise.all([stopping.server.drain(50), stopping.runner.drain(50)]);
    const back = await node.join('a', { resume_token, ...holding(ref) });
    expect(back.welcome.resumed).toBe(true);
    expect(await resultOf(back.agent, id)).toEqual(refusedWith(code));
    back.agent.send('dispatch_result', { result: 'done' }, uuidOf(ref.dispatch_id));
    expect(await approvals.ended(ref)).toMatchObject({ state: 'completed' });
  });

  it('is carried by the next dispatch when the agent was lost: the repeated call passes, once', async () => {
    const held = await heldCall();
    const { ref, end } = held;
    const agent = await loseDispatch(held);
    expect(await end).toEqual({ kind: 'closed' });
    expect(await fixture.message(ref)).toMatchObject({ state: 'input-required', input_request: { tool: 'pay' } });
    await approvals.resolve(ref, 'approved', { comment: 'fine' });
    expect(b.count('tool_call')).toBe(0);
    const { next, payload, metadata, dispatch, end: ended } = await nextDispatch(ref, agent);
    expect(metadata.resolution).toMatchObject({ resolution: 'approved', comment: 'fine' });
    const repeated = callTool(agent, payload);
    await pays(b, agent, repeated);
    expect(agent.received.filter(({ in_reply_to }) => in_reply_to === repeated)).toHaveLength(1);
    expect(await ask(agent, payload)).toEqual(refusedWith('APPROVAL_PENDING'));
    dispatch.result('done');
    expect(await ended).toMatchObject({ final: 'completed' });
    expect(await approvals.requests(next)).toEqual(['resolved', 'withdrawn']);
  });

  it('is found by a repeat of the call in another process, by its idempotency key, however far the call is', async () => {
    const { db, bus } = fixture.core;
    const link = createLocalLink('elsewhere');
    const of = { db, bus, link, meshId: 'elsewhere', log: createLogger({ level: 'silent' }) };
    const overHttp = new ToolCallService({
      ...of,
      dispatches: fixture.dispatches,
      calls: fixture.tools(link, 'elsewhere'),
    });
    const { agent } = await node.join('a');
    const { ref } = await node.send(agent, 'pay it');
    const payload = { tool: 'pay', arguments: { amount: 5 }, dispatch_id: ref.dispatch_id, idempotency_key: 'k' };
    const repeat = (more: object = {}) => {
      const body = { ...payload, instance_id: 'a', deadline_ms: 50, ...more };
      return overHttp.call(fixture.caller, body, { signal: new AbortController().signal });
    };
    callTool(agent, payload);
    await approvals.asked(ref);
    expect(await repeat()).toEqual(refusedWith('APPROVAL_PENDING'));
    expect(await approvals.requests(ref)).toEqual(['pending']);
    await approvals.resolve(ref, 'approved');
    await take(b, 'pay'); // its process is not heard of again
    expect(await repeat()).toEqual(refusedWith('AGENT_DISCONNECTED'));
    expect(await approvals.requests(ref)).toEqual(['resolved']);
    expect(await repeat({ idempotency_key: 'another' })).toEqual(refusedWith('APPROVAL_PENDING'));
    expect(await approvals.requests(ref)).toEqual(['resolved', 'pending']);
    expect(b.count('tool_call')).toBe(1);
  });

  it('that is negative is carried too, and is not asked for again', async () => {
    const tells = { priority: 1, approval: { on_reject: 'tell_agent' } };
    await policyAboutPay('require_approval', tells);
    const held = await heldCall();
    const agent = await loseDispatch(held);
    await approvals.resolve(held.ref, 'rejected');
    const { next, payload, metadata } = await nextDispatch(held.ref, agent);
    expect(metadata.resolution).toMatchObject({ resolution: 'rejected' });
    expect(await ask(agent, payload)).toEqual(refusedWith('APPROVAL_REJECTED'));
    expect(await approvals.requests(next)).toEqual(['resolved']);
  });

  it('for edited arguments lets the call pass that it was asked for, with the edited ones', async () => {
    const held = await heldCall();
    const agent = await loseDispatch(held);
    await approvals.resolve(held.ref, 'approved', { arguments: { amount: 3 } });
    const { payload } = await nextDispatch(held.ref, agent);
    const repeated = callTool(agent, payload);
    expect((await pays(b, agent, repeated)).payload.arguments).toEqual({ amount: 3 });
  });

  it('counts for no other arguments and no other target; the third question anew fails the message', async () => {
    const held = await heldCall();
    const agent = await loseDispatch(held);
    await approvals.resolve(held.ref, 'approved');
    const { next, end, payload } = await nextDispatch(held.ref, agent);
    const others = [{ arguments: { amount: 6 } }, { target: { instance_id: 'b' } }];
    for (const other of others) {
      const id = callTool(agent, { ...payload, ...other });
      expect(await resultOf(agent, id)).toEqual(refusedWith('APPROVAL_PENDING'));
      await approvals.asked(next);
      agent.send('error', { code: 'CANCELED' }, id);
      expect(await resultOf(agent, id)).toEqual(refusedWith('CANCELED'));
      await until(async () => (await fixture.message(next)).state === 'working');
    }
    expect(await ask(agent, { ...payload, arguments: { amount: 7 } })).toEqual(refusedWith('POLICY_DENIED'));
    expect(await fixture.message(next)).toMatchObject({ state: 'failed', error: { code: 'POLICY_DENIED' } });
    await errorOf(agent, 'DISPATCH_ALREADY_TERMINAL');
    expect(await end).toMatchObject({ kind: 'closed' });
  });

  it('is left for another call when this one reached nobody, and its caller hears so', async () => {
    const { ref, agent, id, payload } = await heldCall();
    b.close();
    await until(async () => (await fixture.agent('b')).status === 'offline');
    await approvals.resolve(ref, 'approved');
    expect(await resultOf(agent, id)).toMatchObject({ error: { code: 'TARGET_UNAVAILABLE', approved: true } });
    const { agent: again } = await node.join('b', { tools: ['pay'] });
    expect(await answeredCall(agent, payload, again, ok('paid'))).toEqual(ok('paid'));
    expect(await approvals.requests(ref)).toEqual(['resolved']);
  });

  it('of which the agent has heard, and gone on, is no reason to send its message to another', async () => {
    const held = await heldCall();
    const { ref, agent, id } = held;
    b.close();
    await until(async () => (await fixture.agent('b')).status === 'offline');
    await approvals.resolve(ref, 'approved');
    expect(await resultOf(agent, id)).toEqual(refusedWith('TARGET_UNAVAILABLE'));
    const isAnswered = `SELECT 1 FROM tool_grants WHERE message_id = $1 AND answered_at IS NOT NULL AND used_at IS NULL`;
    await until(async () => (await database.query(isAnswered, [ref.message_id])).length > 0);
    await loseDispatch(held);
    expect(await approvals.ended(ref)).toMatchObject({ state: 'failed', error: { code: 'AGENT_DISCONNECTED' } });
  });

  it('is left for another call when the platform failed before it sent this one', async () => {
    const { ref, agent, id, payload } = await heldCall();
    await database.query('ALTER FUNCTION agent_load(text, text) RENAME TO agent_load_away');
    await approvals.resolve(ref, 'approved');
    expect(await resultOf(agent, id)).toEqual(refusedWith('INTERNAL'));
    await database.query('ALTER FUNCTION agent_load_away(text, text) RENAME TO agent_load');
    expect(await answeredCall(agent, payload, b, ok('paid'))).toEqual(ok('paid'));
    expect(await approvals.requests(ref)).toEqual(['resolved']);
  });

  it('is used once, also by a call that asks again because the answer was lost', async () => {
    const held = await heldCall();
    const { ref } = held;
    const { request_id } = await approvals.asked(ref);
    const agent = await loseDispatch(held);
    await approvals.resolve(ref, 'approved');
    const { next } = await nextDispatch(ref, agent);
    const { db } = fixture.core;
    const [first, other] = [randomUUID(), randomUUID()];
    const use = async (useId: string) => (await useToolGrant(db, next, request_id, true, useId)).kind;
    expect(await use(first)).toBe('granted');
    expect(await use(first)).toBe('granted');
    expect(await use(other)).toBe('used_by_other');
    await returnToolGrant(db, ref.tenant_id, request_id, other);
    expect(await use(other)).toBe('used_by_other');
    await returnToolGrant(db, ref.tenant_id, request_id, first);
    expect(await use(other)).toBe('granted');
  });
});
