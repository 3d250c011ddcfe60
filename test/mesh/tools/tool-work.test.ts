import { beforeEach, describe, expect, it } from 'vitest';
import { LIMITS } from '../../../contracts/limits.js';
import { errorOf, type FixtureAgent } from '../fixture-agent.js';
import type { MeshNodeUnderTest } from '../mesh-fixture.js';
import { fixture, useMesh } from '../use-mesh.js';
import { ask, callTool, ok, refusedWith, resultOf, type TakenCall, take } from './tool-fixture.js';

useMesh();

let node: MeshNodeUnderTest;
/** Who calls, and who lists the tool `t`. */
let a: FixtureAgent;
let b: FixtureAgent;

const join = async (instanceId: string, ...tools: string[]) => (await node.enter(instanceId, tools)).agent;

beforeEach(async () => {
  node = await fixture.node();
  [a, b] = [await join('a'), await join('b', 't')];
});

/** An agent with a dispatch in hand, and the id that its calls name. */
async function working(agent: FixtureAgent, metadata: Record<string, unknown> = {}) {
  const { ref, dispatch } = await node.send(agent, 'work', metadata);
  return { ref, dispatch, dispatch_id: ref.dispatch_id };
}

describe('a call made on behalf of a dispatch', () => {
  it('has the session of the dispatch, its trace, and no more time than it', async () => {
    const { dispatch, dispatch_id } = await working(a, { deadline_ms: 5_000 });
    const id = callTool(a, { tool: 't', dispatch_id, deadline_ms: 60_000 });
    const call = await take(b, 't');
    const { session_id } = dispatch.payload.session_context;
    expect(call.payload.session_id).toBe(session_id);
    expect(call.payload.deadline_ms).toBeLessThanOrEqual(5_000);
    expect(call.frame).toMatchObject({ trace_id: (dispatch.frame as unknown as { trace_id: string }).trace_id });
    call.result(ok(1));
    expect(await resultOf(a, id)).toEqual(ok(1));
  });

  it('is canceled with the message, and so is what was called on its behalf', async () => {
    const c = await join('c', 'u');
    const { ref, dispatch_id } = await working(a);
    const id = callTool(a, { tool: 't', dispatch_id });
    const outer = await take(b, 't');
    callTool(b, { tool: 'u', dispatch_id: outer.payload.dispatch_id });
    const inner = await take(c, 'u');
    await fixture.cancel(ref);
    await Promise.all([outer.canceled(), inner.canceled()]);
    expect(await resultOf(a, id)).toEqual(refusedWith('CANCELED'));
  });

  it('is canceled when the dispatch has its result', async () => {
    const { dispatch, dispatch_id } = await working(a);
    callTool(a, { tool: 't', dispatch_id });
    const call = await take(b, 't');
    dispatch.result('done without it');
    await call.canceled();
    expect(await ask(a, { tool: 't', dispatch_id })).toEqual(refusedWith('UNKNOWN_DISPATCH'));
  });

  it('cannot bring a session in that the tenant does not have', async () => {
    callTool(a, { tool: 't' });
    const call = await take(b, 't');
    const { dispatch_id } = call.payload;
    await join('c', 'u');
    expect(await ask(b, { tool: 'u', dispatch_id, session_id: 'ses_x' })).toEqual(refusedWith('NOT_FOUND'));
    call.result(ok(1));
  });

  it('of another agent is refused', async () => {
    const { dispatch_id } = await working(a);
    expect(await ask(b, { tool: 't', dispatch_id })).toEqual(refusedWith('UNKNOWN_DISPATCH'));
    callTool(a, { tool: 't', dispatch_id });
    const call = await take(b, 't');
    expect(await ask(a, { tool: 't', dispatch_id: call.payload.dispatch_id })).toEqual(refusedWith('UNKNOWN_DISPATCH'));
  });
});

describe('a chain of calls', () => {
  /** One agent calls the next; each says what its call is part of, or not. @returns the last call that got through, and its agent */
  async function chain(depth: number, named: boolean): Promise<{ last: FixtureAgent; call: TakenCall }> {
    let caller = await join('a0');
    let call: TakenCall | undefined;
    for (let index = 1; index <= depth; index++) {
      const next = await join(`a${index}`, `t${index}`);
      const part = named && call ? { dispatch_id: call.payload.dispatch_id } : {};
      callTool(caller, { tool: `t${index}`, ...part });
      call = await take(next, `t${index}`);
      caller = next;
    }
    if (!call) throw new Error('the chain is empty');
    return { last: caller, call };
  }

  it.each([true, false])('ends at the greatest depth (named: %s)', async (named) => {
    await join('more', 'one-more');
    const { last, call } = await chain(LIMITS.toolCallDepthMax, named);
    const part = named ? { dispatch_id: call.payload.dispatch_id } : {};
    expect(await ask(last, { tool: 'one-more', ...part })).toMatchObject({
      error: { code: 'POLICY_DENIED', retryable: false },
    });
    expect(await ask(last, { tool: 'fleet.get_agents', ...part })).toEqual(refusedWith('POLICY_DENIED'));
    call.result(ok(1));
  });

  it('does not come back to a tool that waits for it', async () => {
    const [pinged, ponged] = [await join('c', 'ping'), await join('d', 'pong')];
    callTool(ponged, { tool: 'ping' });
    const ping = await take(pinged, 'ping');
    callTool(pinged, { tool: 'pong', dispatch_id: ping.payload.dispatch_id });
    const pong = await take(ponged, 'pong');
    const { dispatch_id } = pong.payload;
    expect(await ask(ponged, { tool: 'ping', dispatch_id })).toEqual(refusedWith('POLICY_DENIED'));
    expect(await ask(ponged, { tool: 'ping' })).toEqual(refusedWith('POLICY_DENIED'));
    const other = await join('c2', 'ping');
    callTool(ponged, { tool: 'ping', dispatch_id });
    (await take(other, 'ping')).result(ok(1)); // another instance is not waiting
    pong.result(ok(2));
    ping.result(ok(3));
    callTool(ponged, { tool: 'ping', target: { instance_id: 'c' } });
    await take(pinged, 'ping'); // nothing waits any more
  });
});

describe('a call ends', () => {
  it('at its deadline, and its agent is told', async () => {
    const id = callTool(a, { tool: 't', deadline_ms: 200 });
    const call = await take(b, 't');
    expect(await resultOf(a, id)).toEqual(refusedWith('DEADLINE_EXCEEDED'));
    await call.canceled();
    call.result(ok('too late'));
    await errorOf(b, 'DISPATCH_ALREADY_TERMINAL');
  });

  it('when the caller withdraws it', async () => {
    const id = callTool(a, { tool: 't' });
    const call = await take(b, 't');
    a.send('error', { code: 'CANCELED', message: 'never mind' }, id);
    await call.canceled();
    expect(await resultOf(a, id)).toEqual(refusedWith('CANCELED'));
  });

  it('when the caller’s socket is gone, with what was called on its behalf', async () => {
    const c = await join('c', 'u');
    callTool(a, { tool: 't' });
    const outer = await take(b, 't');
    const id = callTool(b, { tool: 'u', dispatch_id: outer.payload.dispatch_id });
    const inner = await take(c, 'u');
    a.kill();
    await Promise.all([outer.canceled(), inner.canceled()]);
    expect(await resultOf(b, id)).toEqual(refusedWith('CANCELED'));
  });

  it('when the agent that answers it is lost', async () => {
    const id = callTool(a, { tool: 't', idempotency_key: 'k' });
    await take(b, 't');
    b.kill();
    expect(await resultOf(a, id)).toMatchObject({ error: { code: 'AGENT_DISCONNECTED', retryable: false } });
    const { agent: back } = await node.join('b', { tools: ['t'] });
    expect(await ask(a, { tool: 't', idempotency_key: 'k' })).toEqual(refusedWith('AGENT_DISCONNECTED'));
    expect(back.count('tool_call')).toBe(0);
  });

  it('in peace when the agent that answers it goes home, which gets no other', async () => {
    const id = callTool(a, { tool: 't' });
    const call = await take(b, 't');
    b.send('close_request', { grace_seconds: 60 });
    b.send('ping', {});
    await b.nextOfType('pong');
    expect(await ask(a, { tool: 't' })).toEqual(refusedWith('TARGET_UNAVAILABLE'));
    call.result(ok(1));
    expect(await resultOf(a, id)).toEqual(ok(1));
    expect((await b.closed).code).toBe(1000);
  });
});

describe('a slow socket', () => {
  it('of the agent that is to answer makes it busy', async () => {
    b.pause();
    const big = { x: 'x'.repeat(200_000) };
    const ids = Array.from({ length: 60 }, () => callTool(a, { tool: 't', arguments: big }));
    const first = await a.nextOfType('tool_result');
    expect(ids).toContain(first.in_reply_to);
    expect(first.payload).toEqual(refusedWith('AGENT_BUSY'));
  });
});
