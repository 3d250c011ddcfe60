import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { LIMITS } from '../../../contracts/limits.js';
import { errorOf, type FixtureAgent } from '../fixture-agent.js';
import type { MeshNodeUnderTest } from '../mesh-fixture.js';
import { fixture, useMesh } from '../use-mesh.js';
import { answeredCall, ask, callTool, failing, ok, refusedWith, resultOf, take } from './tool-fixture.js';

useMesh();

let node: MeshNodeUnderTest;
/** Who calls, and who lists the tool `t`. */
let a: FixtureAgent;
let b: FixtureAgent;

const join = async (instanceId: string, tools: unknown[] = []) => (await node.enter(instanceId, tools)).agent;

beforeEach(async () => {
  node = await fixture.node();
  [a, b] = [await join('a'), await join('b', ['t'])];
});

describe('a tool call', () => {
  it('reaches the agent that lists the tool, with what the platform knows, and its result the caller', async () => {
    const trace = { trace_id: 'a'.repeat(32), parent_span_id: 'b'.repeat(16) };
    const id = callTool(a, { tool: 't', arguments: { x: 1 }, deadline_ms: 5_000, idempotency_key: 'k' }, trace);
    const call = await take(b, 't');
    expect(call.frame).toMatchObject({ v: 1, trace_id: trace.trace_id });
    expect(call.payload).toEqual({
      tool: 't',
      arguments: { x: 1 },
      dispatch_id: `call_${call.frame.id}`,
      deadline_ms: expect.any(Number),
      idempotency_key: expect.stringMatching(/^[0-9a-f]{64}$/),
      caller: { agent_type: 'worker', instance_id: 'a' },
    });
    expect(call.payload.deadline_ms).toBeLessThanOrEqual(5_000);
    call.result({ ok: true, result: { sum: 3 } });
    expect(await resultOf(a, id)).toEqual(ok({ sum: 3 }));
  });

  it('goes to the target that is named, by instance, type or skill', async () => {
    await fixture.setAgent('b', `agent_type = 'calculator', skills = '[{"id":"math"}]'`);
    for (const target of [{ instance_id: 'b' }, { agent_type: 'calculator' }, { skill_id: 'math' }, {}]) {
      expect(await answeredCall(a, { tool: 't', target }, b, ok(1))).toEqual(ok(1));
    }
  });

  it('goes to the least loaded of several', async () => {
    const workers = [b, await join('c', ['t'])];
    for (const _ of [1, 2, 3, 4]) callTool(a, { tool: 't' });
    for (const worker of workers) {
      await take(worker, 't');
      await take(worker, 't');
      expect(worker.count('tool_call')).toBe(2);
    }
  });

  it('may be one of many of its dispatch at once', async () => {
    const warnings: string[] = [];
    const note = ({ name }: Error): void => void warnings.push(name);
    process.on('warning', note);
    onTestFinished(() => void process.off('warning', note));
    const { ref } = await node.send(a, 'work');
    const ids = Array.from({ length: 12 }, () => callTool(a, { tool: 't', dispatch_id: ref.dispatch_id }));
    for (const _ of ids) (await take(b, 't')).result(ok(1));
    for (const id of ids) expect(await resultOf(a, id)).toEqual(ok(1));
    expect(warnings).not.toContain('MaxListenersExceededWarning');
  });

  it('that fails says so in the words of the agent', async () => {
    const refused = { ok: false, error: { code: 'NO_FUNDS', message: 'empty', retryable: false } };
    const claimed = { ...refused, error: { ...refused.error, policy_id: 'pol_fake' } };
    expect(await answeredCall(a, { tool: 't' }, b, claimed)).toEqual(refused);
    const second = callTool(a, { tool: 't' });
    (await take(b, 't')).error('HANDLER_ERROR', 'broken');
    expect(await resultOf(a, second)).toEqual(failing('HANDLER_ERROR', 'broken'));
  });

  it('gets one result: a late or a second one is dropped', async () => {
    const id = callTool(a, { tool: 't' });
    const call = await take(b, 't');
    call.result(ok(1));
    call.result(ok(2));
    expect((await errorOf(b, 'DISPATCH_ALREADY_TERMINAL')).in_reply_to).toBe(call.frame.id);
    call.error('CANCELED');
    await errorOf(b, 'DISPATCH_ALREADY_TERMINAL');
    expect(await resultOf(a, id)).toEqual(ok(1));
    expect(a.count('tool_result')).toBe(1);
  });

  it('of another agent cannot be answered', async () => {
    const id = callTool(a, { tool: 't' });
    const call = await take(b, 't');
    a.send('tool_result', ok('mine'), call.frame.id);
    await errorOf(a, 'UNKNOWN_DISPATCH');
    call.result(ok('right'));
    expect(await resultOf(a, id)).toEqual(ok('right'));
  });

  it('is refused, with the reason', async () => {
    await fixture.register('g', { tools: ['gone'] });
    const { tenantId: tenant_id } = await fixture.newTenant();
    await fixture.register('f', { tenant_id, tools: ['foreign'], status: 'available', mesh_id: node.meshId });
    const large = { x: 'x'.repeat(LIMITS.toolArgumentsBytes) };
    for (const [what, call, code] of [
      ['no agent lists the tool', { tool: 'nobody' }, 'TOOL_NOT_FOUND'],
      ['the target does not list it', { tool: 'nobody', target: { instance_id: 'b' } }, 'TOOL_NOT_FOUND'],
      ['there is no such target', { tool: 't', target: { instance_id: 'x' } }, 'TARGET_UNAVAILABLE'],
      ['only an agent that is offline lists it', { tool: 'gone' }, 'TARGET_UNAVAILABLE'],
      ['another tenant has it', { tool: 'foreign' }, 'TOOL_NOT_FOUND'],
      ['the target is of another tenant', { tool: 'foreign', target: { instance_id: 'f' } }, 'TARGET_UNAVAILABLE'],
      ['the platform has it, with other arguments', { tool: 'knowledge_base.query' }, 'BAD_REQUEST'],
      ['the session is not known', { tool: 't', session_id: 'ses_x' }, 'NOT_FOUND'],
      ['the dispatch is not known', { tool: 't', dispatch_id: 'dsp_x' }, 'UNKNOWN_DISPATCH'],
      ['the arguments are too large', { tool: 't', arguments: large }, 'PAYLOAD_TOO_LARGE'],
    ] as const) {
      expect([what, await ask(a, call)]).toEqual([what, refusedWith(code)]);
    }
    expect(b.count('tool_call')).toBe(0);
  });

  it('that does not fit its schema closes the socket', async () => {
    a.send('tool_call', { arguments: {} });
    await errorOf(a, 'BAD_FRAME');
    expect((await a.closed).code).toBe(1002);
  });

  it('whose result is too large fails', async () => {
    const large = ok('x'.repeat(LIMITS.toolResultBytes));
    expect(await answeredCall(a, { tool: 't' }, b, large)).toEqual(refusedWith('HANDLER_ERROR'));
  });

  it('is refused while too many of the caller are in flight', async () => {
    const ids = Array.from({ length: LIMITS.toolCallsInFlightPerCaller }, () => callTool(a, { tool: 't' }));
    for (const _ of ids) await take(b, 't');
    expect(await ask(a, { tool: 't' })).toMatchObject({ error: { code: 'RATE_LIMITED', retryable: true } });
  });

  it('is refused by an agent that has too much in hand', async () => {
    const other = await join('o');
    for (let count = 0; count < LIMITS.pendingToolCallsPerAgent; count++) callTool(a, { tool: 't' });
    for (let count = 0; count < LIMITS.pendingToolCallsPerAgent; count++) await take(b, 't');
    expect(await ask(other, { tool: 't' })).toMatchObject({ error: { code: 'AGENT_BUSY', retryable: true } });
  });

  it('finds out which agents there are', async () => {
    const tools = [{ name: 'sum', description: 'adds' }];
    await join('c', tools);
    await fixture.register('offline');
    const agent = { instance_id: 'c', agent_type: 'worker', deployment_mode: 'connected', skills: [], tools };
    const found = await ask(a, { tool: 'fleet.get_agents', arguments: { tool: 'sum' } });
    expect(found).toEqual(ok({ count: 1, agents: [agent] }));
    expect(await ask(a, { tool: 'fleet.get_agents' })).toMatchObject({ result: { count: 3 } });
    expect(await ask(a, { tool: 'fleet.get_agents', arguments: { x: 1 } })).toEqual(refusedWith('BAD_REQUEST'));
  });
});

describe('an idempotency key', () => {
  it('answers a repeat with the same result, while the call runs and afterwards', async () => {
    const payload = { tool: 't', arguments: { x: 1, y: 2 }, idempotency_key: 'once' };
    const [first, second] = [callTool(a, payload), callTool(a, payload)];
    (await take(b, 't')).result(ok('done'));
    expect(await resultOf(a, first)).toEqual(ok('done'));
    expect(await resultOf(a, second)).toEqual(ok('done'));
    expect(await ask(a, { ...payload, arguments: { y: 2, x: 1 } })).toEqual(ok('done'));
    expect(b.count('tool_call')).toBe(1);
    expect(await ask(a, { ...payload, arguments: { x: 2 } })).toEqual(refusedWith('IDEMPOTENCY_MISMATCH'));
  });

  it('is free again after a call that reached nobody', async () => {
    const payload = { tool: 'u', idempotency_key: 'k' };
    expect(await ask(a, payload)).toEqual(refusedWith('TOOL_NOT_FOUND'));
    expect(await answeredCall(a, payload, await join('c', ['u']), ok(1))).toEqual(ok(1));
  });

  it('is one of its session: used in another, it makes another call', async () => {
    const keys: string[] = [];
    for (const text of ['one', 'two']) {
      const { ref } = await node.send(a, text);
      const id = callTool(a, { tool: 't', dispatch_id: ref.dispatch_id, idempotency_key: 'k' });
      const call = await take(b, 't');
      keys.push(call.payload.idempotency_key);
      call.result(ok(text));
      expect(await resultOf(a, id)).toEqual(ok(text));
    }
    expect(keys[0]).not.toBe(keys[1]);
  });

  it('is its caller’s own', async () => {
    for (const caller of [a, await join('c')]) {
      const result = ok(caller.instanceId);
      expect(await answeredCall(caller, { tool: 't', idempotency_key: 'k' }, b, result)).toEqual(result);
    }
  });
});
