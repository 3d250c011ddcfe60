import { expect, onTestFinished, test } from 'vitest';
import { AgentRegisterResponse } from '../../../contracts/api/agents.js';
import { ToolResult } from '../../../contracts/api/tools.js';
import { hostedAgent } from '../../mesh/hosted/hosted-agent.js';
import { ask, callTool, refusedWith, resultOf, take } from '../../mesh/tools/tool-fixture.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import type { RawAgent } from '../../setup/agent.js';
import { openSocket } from '../../setup/platform/fleet.js';
import { startPlatform } from '../../setup/platform/platform.js';
import type { TestPlatform } from '../../setup/platform/platform-process.js';
import { until } from '../../setup/until.js';

const data = (value: object) => ({
  kind: 'message',
  messageId: 'm',
  role: 'agent',
  parts: [{ kind: 'data', data: value }],
});

async function join(platform: TestPlatform, instance_id: string, ...tools: string[]): Promise<RawAgent> {
  const body = { instance_id, agent_type: 'worker', deployment_mode: 'connected' };
  await platform.client.ok('/agents/register', body, AgentRegisterResponse);
  const agent = await openSocket(platform, instance_id);
  await agent.hello({ tools });
  return agent;
}

test('tools of an agent on another process are called, by socket and by HTTP, until that process dies', async () => {
  const shared = await startPlatform({ REDIS_URL: (await redisServer()).url });
  onTestFinished(() => shared.dispose(), 120_000);
  const peer = await shared.startPeer();
  const a = await join(shared.platform, 'a');
  const b = await join(peer, 'b', 't');

  const id = callTool(a, { tool: 't', arguments: { x: 1 } });
  (await take(b, 't')).result({ ok: true, result: 1 });
  expect(await resultOf(a, id)).toEqual({ ok: true, result: 1 });
  const byHttp = shared.platform.client.ok('/tools/call', { tool: 't' }, ToolResult);
  (await take(b, 't')).result({ ok: true, result: 2 });
  expect(await byHttp).toEqual({ ok: true, result: 2 });

  // The hosted agent is called by the peer, and its own call on behalf of that comes to the other process.
  const server = await hostedAgent({
    'message/send': async (reply) => {
      const { dispatch_id } = reply.request.body;
      const nested = { tool: 'u', dispatch_id };
      reply.result(data({ nested: await shared.platform.client.ok('/tools/call', nested, ToolResult) }));
    },
  });
  const hosted = { instance_id: 'h', agent_type: 'host', public_url: server.url, agent_card: {}, tools: ['v'] };
  await shared.platform.client.ok('/agents/register', hosted, AgentRegisterResponse);
  const c = await join(shared.platform, 'c', 'u');
  const outer = callTool(b, { tool: 'v' });
  const inner = await take(c, 'u');
  expect(inner.payload.caller).toEqual({ agent_type: 'host', instance_id: 'h' });
  expect(await ask(c, { tool: 'v', dispatch_id: inner.payload.dispatch_id })).toEqual(refusedWith('POLICY_DENIED'));
  inner.result({ ok: true, result: 'far' });
  expect(await resultOf(b, outer)).toEqual({ ok: true, result: { nested: { ok: true, result: 'far' } } });

  const leaving = await join(peer, 'd');
  await shared.platform.client.post('/agents/deregister', { instance_id: 'd' });
  expect((await leaving.closed).code).toBe(4410);

  const lost = callTool(a, { tool: 't', deadline_ms: 600_000 });
  await take(b, 't');
  await peer.kill9();
  expect(await resultOf(a, lost)).toMatchObject({ error: { code: 'TARGET_UNAVAILABLE', retryable: false } });
  expect(await ask(a, { tool: 't' })).toEqual(refusedWith('TARGET_UNAVAILABLE'));
  const back = await join(shared.platform, 'b', 't');
  await until(async () => {
    const again = callTool(a, { tool: 't' });
    (await take(back, 't')).result({ ok: true, result: 3 });
    return (await resultOf(a, again)).ok;
  });
}, 180_000);
