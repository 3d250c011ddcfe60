import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { newId } from '../../../runtime/ids.js';
import type { RoutedCall } from '../../../tools/tool-link.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';
import { until } from '../../setup/until.js';
import type { MeshNodeUnderTest } from '../mesh-fixture.js';
import { fixture, useMesh } from '../use-mesh.js';
import { ask, callTool, ok, redisLink, refusedWith, resultOf, take } from './tool-fixture.js';

useMesh();

const CALL: RoutedCall = {
  ...{
    call_id: '',
    tenant_id: 'ten_1',
    tool: 't',
    arguments: {},
    deadline_ms: 20_000,
    idempotency_key: 'once',
    chain: [],
  },
  target: { instance_id: 'b', agent_type: 'worker', deployment_mode: 'connected' },
  caller: { agent_type: 'worker' },
  traceparent: '',
};

interface LinkedNode {
  node: MeshNodeUnderTest;
  /** Cuts it off from the others, as its death would. */
  vanish(): Promise<void>;
  /** The next message to it that holds this text is lost. */
  lose(text: string): void;
}

async function linkedNode(redisUrl: string): Promise<LinkedNode> {
  const meshId = newId('mesh');
  const lost = new Set<string>();
  const arrives = (chunk: Buffer) => ![...lost].some((text) => chunk.includes(text) && lost.delete(text));
  const proxy = await TcpProxy.to(redisUrl, { arrives });
  const { link, close } = redisLink(proxy.urlOf(redisUrl), meshId);
  return {
    node: await fixture.node({ meshId, tools: fixture.tools(link) }),
    vanish: close,
    lose: (text) => void lost.add(text),
  };
}

const join = async ({ node }: LinkedNode, instanceId: string, ...tools: string[]) =>
  (await node.enter(instanceId, tools)).agent;

/** Two nodes that reach each other, with a caller on the one and the agent that lists `t` on the other. */
async function twoNodes() {
  const redis = await redisServer();
  const [here, there] = [await linkedNode(redis.url), await linkedNode(redis.url)];
  const [a, b] = [await join(here, 'a'), await join(there, 'b', 't')];
  // The links open by themselves.
  b.onFrame(({ type, id, payload }) => {
    if (type === 'tool_call' && (payload.arguments as { warm?: true }).warm) b.send('tool_result', ok('warm'), id);
  });
  await until(async () => (await ask(a, { tool: 't', arguments: { warm: true } })).ok);
  await take(b, 't');
  return { redis, here, there, a, b };
}

it('takes no message that was not signed for it: no call is made, and both are counted', async () => {
  const redis = await redisServer();
  const [caller, callee, forger] = [newId('mesh'), newId('mesh'), new Redis(redis.url)];
  onTestFinished(() => forger.disconnect());
  const here = redisLink(redis.url, callee);
  const made: string[] = [];
  here.link.serve({
    call: async ({ call_id }) => {
      made.push(call_id);
      return { sent: true, result: ok('done') };
    },
  });
  const there = redisLink(redis.url, caller);
  const call = (call_id: string) => ({ ...CALL, call_id });
  const asked = (id: string) => there.link.call(callee, call(id), AbortSignal.timeout(20_000));
  await until(async () => (await asked(newId('call'))).result.ok, { what: 'a signed call' });
  const before = made.length;
  const unsigned = JSON.stringify({ kind: 'call', from: caller, call_id: 'call_forged', call: call('call_forged') });
  for (const text of [unsigned, `${'A'.repeat(43)} ${Date.now()} ${unsigned}`])
    expect(await forger.publish(`fleet:nodes:${callee}`, text)).toBe(1);
  await until(() => here.dropped.forged === 2, { what: 'both dropped' });
  expect((await asked('call_signed')).result).toEqual(ok('done'));
  expect(made.slice(before)).toEqual(['call_signed']);
});

describe('a call from one node to another', () => {
  it('carries its chain, so that loops are seen, and is canceled with what was called on its behalf', async () => {
    const { here, a, b } = await twoNodes();
    const c = await join(here, 'c', 'u');
    callTool(a, { tool: 't' });
    const outer = await take(b, 't');
    const { dispatch_id } = outer.payload;
    callTool(b, { tool: 'u', dispatch_id });
    const inner = await take(c, 'u');
    const back = await ask(c, { tool: 't', dispatch_id: inner.payload.dispatch_id });
    expect(back).toEqual(refusedWith('POLICY_DENIED'));
    a.kill();
    await Promise.all([outer.canceled(), inner.canceled()]);
  });

  it('fails soon when the node that holds the agent is gone', async () => {
    const { there, a, b } = await twoNodes();
    const id = callTool(a, { tool: 't' });
    await take(b, 't');
    await there.vanish();
    expect(await resultOf(a, id)).toMatchObject({ error: { code: 'TARGET_UNAVAILABLE', retryable: false } });
    expect(await ask(a, { tool: 't' })).toMatchObject({ error: { code: 'TARGET_UNAVAILABLE', retryable: true } });
  });

  it('is canceled when the node of the caller is gone', async () => {
    const { here, a, b } = await twoNodes();
    callTool(a, { tool: 't' });
    const call = await take(b, 't');
    await here.vanish();
    expect(await call.canceled()).toMatchObject({ in_reply_to: call.frame.id });
  });

  it('has its result although the nodes lose their connections to Redis meanwhile', async () => {
    const { redis, a, b } = await twoNodes();
    const id = callTool(a, { tool: 't', deadline_ms: 20_000 });
    const call = await take(b, 't');
    const client = new Redis(redis.url);
    onTestFinished(() => client.disconnect());
    await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    call.result(ok('kept'));
    expect(await resultOf(a, id)).toEqual(ok('kept'));
  });

  const LOST: [what: string, at: 'here' | 'there', kind: string][] = [
    ['the call', 'there', 'call'],
    ['that the call was taken', 'here', 'acknowledged'],
    ['the result', 'here', 'outcome'],
    ['that the result was taken', 'there', 'acknowledged'],
  ];
  it.each(LOST)('has its result, and runs once, although %s was lost on the way', async (_what, at, kind) => {
    const { here, there, a, b } = await twoNodes();
    const before = b.count('tool_call');
    ({ here, there })[at].lose(`"kind":"${kind}"`);
    const id = callTool(a, { tool: 't', arguments: { x: 1 }, deadline_ms: 300_000 });
    const call = await take(b, 't');
    expect(call.payload).toMatchObject({ arguments: { x: 1 }, caller: { instance_id: 'a' } });
    call.result(ok('once'));
    expect(await resultOf(a, id)).toEqual(ok('once'));
    // Whatever was sent again is there before what comes later.
    b.onFrame((frame) => {
      if (frame.type === 'tool_call') b.send('tool_result', ok('later'), frame.id);
    });
    for (let later = 0; later < 3; later += 1) expect(await ask(a, { tool: 't' })).toEqual(ok('later'));
    expect(b.count('tool_call')).toBe(before + 4);
  });

  it('is canceled although its withdrawal was lost on the way', async () => {
    const { there, a, b } = await twoNodes();
    const id = callTool(a, { tool: 't', deadline_ms: 300_000 });
    const call = await take(b, 't');
    there.lose('"kind":"withdraw"');
    a.send('error', { code: 'CANCELED', message: '', retryable: false }, id);
    expect(await resultOf(a, id)).toEqual(refusedWith('CANCELED'));
    await call.canceled();
  });

  it('is refused while Redis is away, and goes through when it is back', async () => {
    const { redis, a, b } = await twoNodes();
    b.onFrame(({ type, id }) => {
      if (type === 'tool_call') b.send('tool_result', ok(1), id);
    });
    await redis.kill();
    await until(async () => !(await ask(a, { tool: 't', deadline_ms: 1_000 })).ok);
    expect(await ask(a, { tool: 't' })).toEqual(refusedWith('TARGET_UNAVAILABLE'));
    await redis.start();
    await until(async () => (await ask(a, { tool: 't', deadline_ms: 1_000 })).ok);
  });
});
