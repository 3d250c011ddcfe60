import { beforeEach, describe, expect, it } from 'vitest';
import { LIMITS } from '../../../contracts/limits.js';
import { until } from '../../setup/until.js';
import { errorOf, type FixtureAgent } from '../fixture-agent.js';
import type { MeshNodeUnderTest } from '../mesh-fixture.js';
import { callTool, ok, refusedWith, resultOf, take } from '../tools/tool-fixture.js';
import { fixture, useMesh } from '../use-mesh.js';

/** The slowness of a reader is not what these tests wait for. */
const NEVER_BLOCKED = { clocks: { blockedMaxMs: 3_600_000 } };

useMesh();

let node: MeshNodeUnderTest;
beforeEach(async () => {
  node = await fixture.node(NEVER_BLOCKED);
});

const join = (instanceId: string, tools: string[] = []) => node.enter(instanceId, tools);

/** Opens a second socket beside the first, as for a new token, and waits for the end of the first. */
async function takeOver({ agent, welcome }: Awaited<ReturnType<typeof join>>, tools: string[] = []) {
  const { resume_token } = welcome;
  const back = await node.join(agent.instanceId, { resume_token, tools });
  expect(back.welcome.resumed).toBe(true);
  expect((await agent.closed).code).toBe(4409);
  return back.agent;
}

describe('an agent that takes over its own socket', () => {
  it('gets the results of the calls that it made before', async () => {
    const [a, b] = [await join('a'), await join('b', ['t'])];
    const id = callTool(a.agent, { tool: 't', deadline_ms: 300_000 });
    const call = await take(b.agent, 't');
    const back = await takeOver(a);
    call.result(ok('still wanted'));
    expect(await resultOf(back, id)).toEqual(ok('still wanted'));
  });

  it('may withdraw a call that it made before, and a call that it repeats is the same one', async () => {
    const [a, b] = [await join('a'), await join('b', ['t'])];
    const id = callTool(a.agent, { tool: 't', deadline_ms: 300_000 });
    const call = await take(b.agent, 't');
    const back = await takeOver(a);
    back.sendRaw(JSON.stringify({ v: 1, type: 'tool_call', id, ts: new Date().toISOString(), payload: { tool: 't' } }));
    back.send('error', { code: 'CANCELED', message: '', retryable: false }, id);
    await call.canceled();
    expect(await resultOf(back, id)).toEqual(refusedWith('CANCELED'));
    expect(b.agent.count('tool_call')).toBe(1);
  });

  it('answers by the new socket what it was called for by the old one, or hears that it need not', async () => {
    const [a, b] = [await join('a'), await join('b', ['t', 'u'])];
    const [first, second] = [callTool(a.agent, { tool: 't' }), callTool(a.agent, { tool: 'u' })];
    const [answered, withdrawn] = [await take(b.agent, 't'), await take(b.agent, 'u')];
    const back = await takeOver(b, ['t', 'u']);
    back.send('tool_result', ok('answered'), answered.frame.id);
    expect(await resultOf(a.agent, first)).toEqual(ok('answered'));
    a.agent.send('error', { code: 'CANCELED', message: '', retryable: false }, second);
    expect((await errorOf(back, 'CANCELED')).in_reply_to).toBe(withdrawn.frame.id);
  });

  it('without its token starts clean: its calls are withdrawn, and those that it was answering have failed', async () => {
    const [a, b] = [await join('a', ['u']), await join('b', ['t'])];
    callTool(a.agent, { tool: 't' });
    const made = await take(b.agent, 't');
    const given = callTool(b.agent, { tool: 'u' });
    await take(a.agent, 'u');
    await node.join('a');
    await made.canceled();
    expect(await resultOf(b.agent, given)).toEqual(refusedWith('AGENT_DISCONNECTED'));
  });
});

describe('a caller that does not read', () => {
  /** Calls and calls, without reading, until `done`. */
  const callUntil = (agent: FixtureAgent, done: () => boolean) =>
    until(() => {
      for (let count = 0; count < 1_000; count += 1) callTool(agent, { tool: 'nobody' });
      return done();
    });

  it('is closed with BACKPRESSURE when too many refusals wait for it', async () => {
    const { agent } = await join('a');
    agent.pause();
    await callUntil(agent, () => node.server.stats().suspended === 1);
    agent.resume();
    await errorOf(agent, 'BACKPRESSURE');
    expect((await agent.closed).code).toBe(1013);
  });

  it('gets all results of as many calls as may be in flight, however large, once it reads', async () => {
    const [a, b] = [await join('a'), await join('b', ['t'])];
    const large = 'x'.repeat(LIMITS.toolResultBytes - 1_024);
    b.agent.onFrame(({ type, id }) => {
      if (type === 'tool_call') b.agent.send('tool_result', ok(large), id);
    });
    a.agent.pause();
    const ids = Array.from({ length: LIMITS.toolCallsInFlightPerCaller }, () => callTool(a.agent, { tool: 't' }));
    await until(() => b.agent.count('tool_call') === ids.length);
    a.agent.resume();
    for (const id of ids) expect(await resultOf(a.agent, id)).toEqual(ok(large));
  });
});
