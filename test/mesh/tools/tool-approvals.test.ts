import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { MessageInput } from '../../../contracts/workflows.js';
import { resolveMessage } from '../../../messages/input/resolve.js';
import { takeStep } from '../../../messages/supervise/next-step.js';
import { Sweeper } from '../../../messages/supervise/sweeper.js';
import { messageCore } from '../../setup/core.js';
import { stepAndTake } from '../../setup/take.js';
import { until } from '../../setup/until.js';
import { errorOf, type FixtureAgent } from '../fixture-agent.js';
import { database, fixture } from '../use-mesh.js';
import { approvals, b, careful, heldCallOf, node, pays, policyAboutPay, usePayments } from './approval-fixture.js';
import { answeredCall, ask, callTool, ok, refusedWith, resultOf, take } from './tool-fixture.js';

usePayments('pay', 'look');

let a: FixtureAgent;
beforeEach(async () => {
  a = (await node.join('a')).agent;
});

const heldCall = (given?: object, metadata?: object) => heldCallOf(a, node, given, metadata);

describe('a tool call that needs approval', () => {
  it('makes its message wait, and is made by the platform once a human approves', async () => {
    const { ref, id, dispatch, end, request } = await heldCall();
    expect(request).toMatchObject({ kind: 'approval', source: 'policy', tool: 'pay', arguments: { amount: 5 } });
    expect(await approvals.dispatch(ref)).toMatchObject({ state: 'sent', deadline_at: null });
    expect(b.count('tool_call')).toBe(0);
    const asked = { policy_id: careful, policy_name: 'require_approval', action: 'call', tool: 'pay' };
    expect(await fixture.events('policy.approval_required')).toEqual([
      { ...asked, message_id: ref.message_id, session_id: expect.any(String) },
    ]);
    expect(await approvals.resolve(ref, 'approved')).toMatchObject({ new_state: 'working' });
    const { payload } = await pays(b, a, id);
    expect(payload).toMatchObject({ arguments: { amount: 5 }, caller: { instance_id: 'a' } });
    expect((await approvals.dispatch(ref)).deadline_at).not.toBeNull();
    dispatch.result('done');
    expect(await end).toMatchObject({ final: 'completed' });
  });

  it('wakes the workflow of its message until that has looked, also when the message has ended meanwhile', async () => {
    const { ref, id, dispatch, end } = await heldCall();
    await approvals.resolve(ref, 'approved'); // its own wake-up is lost: there is no workflow here
    await pays(b, a, id);
    dispatch.result('done');
    expect(await end).toMatchObject({ final: 'completed' });
    let wakeUps = 0;
    const temporal = {
      // Other tests leave messages too.
      wakeMessage: async ({ message_id }: MessageInput) => {
        if (message_id === ref.message_id) wakeUps += 1;
      },
      wakeSession: async () => undefined,
      fateOfSession: async () => 'running' as const,
    };
    const sweeper = new Sweeper(fixture.core, temporal);
    const sweepLater = async () => {
      await database.query(`UPDATE input_requests SET wake_requested_at = wake_requested_at - interval '16 s'`);
      await sweeper.sweep();
    };
    await sweepLater();
    await sweepLater();
    expect(wakeUps).toBe(2);
    expect((await takeStep(fixture.core, ref, 'workflow')).step).toMatchObject({ kind: 'done', state: 'completed' });
    await sweepLater();
    expect(wakeUps).toBe(2);
  });

  it('stops the clock of its dispatch', async () => {
    const { ref, id, dispatch, end } = await heldCall({}, { deadline_ms: 1_000 });
    await delay(1_200); // longer than the dispatch may take
    expect((await fixture.message(ref)).state).toBe('input-required');
    await approvals.resolve(ref, 'approved');
    await pays(b, a, id);
    dispatch.result('done');
    expect(await end).toMatchObject({ final: 'completed' });
  });

  it('counts on after the decision', async () => {
    const { ref, end } = await heldCall({}, { deadline_ms: 500 });
    await approvals.resolve(ref, 'approved');
    (await take(b, 'pay')).result(ok(1));
    await errorOf(a, 'DEADLINE_EXCEEDED');
    expect(await end).toMatchObject({ final: 'failed', error: { code: 'DEADLINE_EXCEEDED' } });
  });

  it('that is rejected fails its message', async () => {
    const { ref, id } = await heldCall();
    expect(await approvals.resolve(ref, 'rejected', { comment: 'too much' })).toMatchObject({ new_state: 'failed' });
    expect(await resultOf(a, id)).toMatchObject({ error: { code: 'APPROVAL_REJECTED', message: /too much/ } });
    expect(await fixture.message(ref)).toMatchObject({ state: 'failed', error: { code: 'APPROVAL_REJECTED' } });
    expect(await approvals.dispatch(ref)).toMatchObject({ state: 'failed', error_code: 'APPROVAL_REJECTED' });
    await errorOf(a, 'DISPATCH_ALREADY_TERMINAL');
    expect(b.count('tool_call')).toBe(0);
  });

  it('that is rejected tells its agent, where the policy says so, and is not asked about again', async () => {
    await policyAboutPay('require_approval', { priority: 1, approval: { on_reject: 'tell_agent' } });
    const { ref, id, payload, dispatch, end } = await heldCall();
    await approvals.resolve(ref, 'rejected');
    expect(await resultOf(a, id)).toEqual(refusedWith('APPROVAL_REJECTED'));
    expect((await fixture.message(ref)).state).toBe('working');
    expect(await ask(a, payload)).toEqual(refusedWith('APPROVAL_REJECTED'));
    dispatch.result('without it');
    expect(await end).toMatchObject({ final: 'completed' });
    expect(await approvals.requests(ref)).toEqual(['resolved']);
  });

  it.each<[string, string, (held: Awaited<ReturnType<typeof heldCall>>) => unknown, text?: string]>([
    ['the result of its dispatch comes first', 'completed', ({ dispatch }) => dispatch.result('never mind')],
    ['its agent withdraws it', 'working', ({ id }) => a.send('error', { code: 'CANCELED' }, id), 'withdrawn'],
    ['its message is canceled', 'canceled', ({ ref }) => fixture.cancel(ref)],
  ])('is forgotten when %s: its message is %s', async (_what, state, withdraw, text = '') => {
    const held = await heldCall();
    const { ref, id, dispatch, end } = held;
    await withdraw(held);
    const error = { code: 'CANCELED', message: expect.stringContaining(text) };
    expect(await resultOf(a, id)).toMatchObject({ ok: false, error });
    await until(async () => (await fixture.message(ref)).state === state);
    expect(await approvals.requests(ref)).toEqual(['withdrawn']);
    await expect(approvals.resolve(ref, 'approved')).rejects.toMatchObject({ code: 'NOT_AWAITING_INPUT' });
    if (state !== 'working') return;
    expect((await approvals.dispatch(ref)).deadline_at).not.toBeNull();
    dispatch.result('without it');
    expect(await end).toMatchObject({ final: 'completed' });
  });

  it('gives way to a question of the agent itself', async () => {
    const { ref, id, dispatch } = await heldCall();
    const input_request = { kind: 'confirmation', title: 'Sure?', prompt: 'Sure?' };
    dispatch.result('', { status: { state: 'input-required', input_request } });
    expect(await resultOf(a, id)).toEqual(refusedWith('CANCELED'));
    await until(async () => (await approvals.requests(ref)).length === 2);
    expect(await approvals.requests(ref)).toEqual(['withdrawn', 'pending']);
    expect(await fixture.message(ref)).toMatchObject({ input_request: { source: 'agent', title: 'Sure?' } });
  });

  it('fails its message when nobody decides in time', async () => {
    const { ref, id } = await heldCall();
    const later = () => new Date(Date.now() + 86_401_000);
    expect((await stepAndTake(fixture.core, ref, { now: later })).step).toMatchObject({
      kind: 'done',
      error: { code: 'APPROVAL_EXPIRED' },
    });
    expect(await resultOf(a, id)).toEqual(refusedWith('APPROVAL_EXPIRED'));
    await errorOf(a, 'DISPATCH_ALREADY_TERMINAL');
  });

  it('is made with the arguments that the approver edited, which pass the policies again', async () => {
    const { ref, id } = await heldCall();
    const negative = { tools: ['pay'], arguments: [{ path: 'amount', op: 'lt', value: 0 }] };
    await policyAboutPay('deny', { match: negative });
    const resolveWith = (amount: number) => approvals.resolve(ref, 'approved', { arguments: { amount } });
    await expect(resolveWith(-1)).rejects.toMatchObject({ code: 'forbidden' });
    await resolveWith(3);
    const { payload } = await pays(b, a, id);
    expect(payload.arguments).toEqual({ amount: 3 });
  });

  it('is denied when the policies deny it by the time that it is approved', async () => {
    const { ref, id } = await heldCall();
    const policy_id = await policyAboutPay('deny', { priority: 1 });
    await approvals.resolve(ref, 'approved');
    expect(await resultOf(a, id)).toMatchObject({ error: { code: 'POLICY_DENIED', policy_id } });
    expect(b.count('tool_call')).toBe(0);
  });

  it('waits its turn behind another call of the same message, and keeps its own deadline meanwhile', async () => {
    const { ref, id } = await heldCall({ amount: 1 });
    const payload = { tool: 'pay', arguments: { amount: 2 }, dispatch_id: ref.dispatch_id, deadline_ms: 60_000 };
    const second = callTool(a, payload);
    expect(await resultOf(a, second)).toEqual(refusedWith('APPROVAL_PENDING'));
    const now = performance.now.bind(performance);
    const later = vi.spyOn(performance, 'now').mockImplementation(() => now() + 45_000);
    onTestFinished(() => later.mockRestore());
    await approvals.resolve(ref, 'approved');
    await pays(b, a, id);
    await until(async () => (await approvals.requests(ref)).length === 2);
    later.mockRestore(); // a statement that times out on the shifted clock would have the pool trust no connection for as long
    const stored = `SELECT (call ->> 'deadline_ms')::integer FROM tool_grants
      WHERE message_id = $1 AND used_at IS NULL`;
    const [left] = await database.column<number>(stored, [ref.message_id]);
    expect(left).toBeGreaterThan(30_000);
    await approvals.resolve(ref, 'approved');
    expect((await pays(b, a, second)).payload.arguments).toEqual({ amount: 2 });
  });

  it('hears of the decision although its notice was lost', async () => {
    const { ref, id } = await heldCall();
    const elsewhere = messageCore(database.db()); // a process that nothing here listens to
    await resolveMessage(elsewhere, fixture.caller, ref.message_id, { resolution: 'approved' });
    await pays(b, a, id);
  });

  it('is made once where two ask for the same: the other hears that its approval is used', async () => {
    const { ref, id, payload } = await heldCall();
    const other = callTool(a, payload);
    expect(await resultOf(a, other)).toEqual(refusedWith('APPROVAL_PENDING'));
    await approvals.resolve(ref, 'approved');
    (await take(b, 'pay')).result(ok('paid'));
    const results = await Promise.all([resultOf(a, id), resultOf(a, other)]);
    expect(results).toContainEqual(ok('paid'));
    expect(results).toContainEqual(refusedWith('CANCELED'));
    expect(JSON.stringify(results)).toContain('Another call has used the approval');
  });

  it('lets calls that need none through meanwhile', async () => {
    const { ref } = await heldCall();
    expect(await answeredCall(a, { tool: 'look', dispatch_id: ref.dispatch_id }, b, ok('seen'))).toEqual(ok('seen'));
  });
});

describe('a tool call', () => {
  it('that a policy denies is not made, and is on the record', async () => {
    const policy_id = await policyAboutPay('deny', { priority: 1, reason: 'Not this.' });
    const error = { code: 'POLICY_DENIED', message: 'Not this.', policy_id, retryable: false };
    expect(await ask(a, { tool: 'pay' })).toEqual({ ok: false, error });
    const about = { action: 'call', tool: 'pay', reason: 'Not this.' };
    expect(await fixture.events('policy.denied')).toEqual([{ policy_id, policy_name: 'deny', ...about }]);
    expect(b.count('tool_call')).toBe(0);
  });

  it('cannot wait for a human without a message that can', async () => {
    expect(await ask(a, { tool: 'pay' })).toMatchObject({ error: { code: 'POLICY_DENIED', policy_id: careful } });
  });

  it('that cannot be made is not asked about', async () => {
    const { ref } = await node.send(a, 'pay it');
    b.close();
    await until(async () => (await fixture.agent('b')).status === 'offline');
    await fixture.setAgent('b', "tools = '[]'");
    expect(await ask(a, { tool: 'pay', dispatch_id: ref.dispatch_id })).toEqual(refusedWith('TOOL_NOT_FOUND'));
    expect(await approvals.requests(ref)).toEqual([]);
  });
});
