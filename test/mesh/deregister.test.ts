import { expect, it } from 'vitest';
import type { DeregistrationCause } from '../../agents/agent-row.js';
import { lockAgent } from '../../agents/agents.js';
import { deregisterAgents } from '../../agents/registration.js';
import { newId } from '../../runtime/ids.js';
import { redisServer } from '../messages/bus/redis-server.js';
import { testAuthor } from '../setup/author.js';
import { until } from '../setup/until.js';
import { errorOf } from './fixture-agent.js';
import { redisLink } from './tools/tool-fixture.js';
import { atWork, fixture, joined, useMesh } from './use-mesh.js';

/** A node that never compares its connections with the database within a test. */
const NO_TURN = { clocks: { reconcileMs: 3_600_000 } };

useMesh('a');

/** As `/agents/deregister`. @returns what the nodes are told */
async function deregister(cause: DeregistrationCause = 'explicit') {
  const { tenantId } = fixture;
  const before = await fixture.core.db.tenant(tenantId, async (tx) => {
    const row = await lockAgent(tx, tenantId, 'a');
    if (!row) throw new Error('there is no such agent');
    await deregisterAgents(tx, row.tenant_id, [row], { cause, reason: 'test', author: testAuthor(row.tenant_id) });
    return row;
  });
  const notice = { tenant_id: tenantId, instance_id: 'a', epoch: before.connection_epoch };
  return { meshId: before.mesh_id ?? '', notice };
}

const registerAnew = () => fixture.setAgent('a', 'deregistered_at = NULL');

it('closes the socket with DEREGISTERED and 4410', async () => {
  const { agent } = await joined();
  await deregister();
  await errorOf(agent, 'DEREGISTERED');
  expect((await agent.closed).code).toBe(4410);
  expect(await fixture.agent('a')).toMatchObject({ status: 'offline', mesh_id: null });
});

it('lets the agent finish what it has, with nothing new', async () => {
  const { agent, ref, end, dispatch } = await atWork();
  await deregister();
  expect((await agent.nextOfType('close_request')).payload).toMatchObject({ grace_seconds: 30 });
  dispatch.result('last words');
  await end;
  expect((await fixture.message(ref)).assistant_output).toBe('last words');
  await errorOf(agent, 'DEREGISTERED');
  expect((await agent.closed).code).toBe(4410);
});

it('ends what an agent had that has lost its socket', async () => {
  const { node, agent, ref, end } = await atWork();
  agent.kill();
  await until(() => node.server.stats().suspended === 1);
  await deregister();
  await end;
  expect((await fixture.message(ref)).error?.code).toBe('AGENT_DISCONNECTED');
  expect(node.server.stats().suspended).toBe(0);
});

it('is heard of at once by the node that has the socket', async () => {
  const { node, agent } = await joined(NO_TURN);
  node.server.closeDeregistered((await deregister()).notice);
  expect((await agent.closed).code).toBe(4410);
});

it('is heard of at once by another process, over Redis', async () => {
  const { url } = await redisServer();
  const meshId = newId('mesh');
  const { link: here } = redisLink(url, newId('mesh'));
  const { link: there } = redisLink(url, meshId);
  const node = await fixture.node({ ...NO_TURN, meshId, tools: fixture.tools(there) });
  there.serve({ deregistered: (agent) => node.server.closeDeregistered(agent) });
  const { agent } = await node.join('a');
  const left = await deregister();
  expect(left.meshId).toBe(meshId);
  // The links open by themselves; the notice may come more than once.
  await until(() => {
    here.deregistered(left.meshId, left.notice);
    return node.server.stats().ready === 0;
  });
  expect((await agent.closed).code).toBe(4410);
});

it('does not keep an agent away that registers anew, not even by a notice that comes late', async () => {
  const { node, agent } = await joined(NO_TURN);
  const { notice } = await deregister();
  await registerAnew();
  const { agent: back } = await node.join('a');
  expect((await agent.closed).code).toBe(4409);
  node.server.closeDeregistered(notice);
  const { ref, end, dispatch } = await node.send(back);
  dispatch.result('here again');
  await end;
  expect((await fixture.message(ref)).state).toBe('completed');
  expect(back.isOpen).toBe(true);
});

it('for silence, while a node could not say that it lives: the agent is told to connect again, and to register', async () => {
  const { node, agent } = await joined();
  const greeting = await node.socket('a');
  await deregister('inactivity');
  expect((await agent.closed).code).toBe(1001);
  greeting.send('hello', { instance_id: 'a' });
  await errorOf(greeting, 'INSTANCE_ID_MISMATCH');
  expect((await greeting.closed).code).toBe(1008);
  await registerAnew();
  await node.join('a');
});
