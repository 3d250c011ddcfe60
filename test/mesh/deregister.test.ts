import { expect, it, onTestFinished } from 'vitest';
import type { DeregistrationCause } from '../../agents/agent-row.js';
import { lockAgent } from '../../agents/agents.js';
import { deregisterAgents } from '../../agents/registration.js';
import { RedisChannel } from '../../mesh/nodes/redis-channel.js';
import { createRedisLink } from '../../mesh/nodes/tool-link-redis.js';
import { newId } from '../../runtime/ids.js';
import { createLogger } from '../../runtime/logger.js';
import { redisServer } from '../messages/bus/redis-server.js';
import { until } from '../setup/until.js';
import { errorOf, receive } from './fixture-agent.js';
import { database, fixture, useMesh } from './use-mesh.js';

/** A node that never compares its connections with the database within a test. */
const NO_TURN = { clocks: { reconcileMs: 3_600_000 } };

useMesh('a');

/** As `/agents/deregister`. @returns what the nodes are told */
async function deregister(cause: DeregistrationCause = 'explicit') {
  const { tenantId } = fixture;
  const before = await fixture.core.db.tenant(tenantId, async (tx) => {
    const row = await lockAgent(tx, tenantId, 'a');
    if (!row) throw new Error('there is no such agent');
    await deregisterAgents(tx, row.tenant_id, [row], { cause, reason: 'test' });
    return row;
  });
  const notice = { tenant_id: tenantId, instance_id: 'a', epoch: before.connection_epoch };
  return { meshId: before.mesh_id ?? '', notice };
}

const registerAnew = () =>
  database.query("UPDATE agents SET deregistered_at = NULL WHERE tenant_id = $1 AND instance_id = 'a'", [
    fixture.tenantId,
  ]);

it('closes the socket with DEREGISTERED and 4410', async () => {
  const { agent } = await (await fixture.node()).join('a');
  await deregister();
  await errorOf(agent, 'DEREGISTERED');
  expect((await agent.closed).code).toBe(4410);
  expect(await fixture.agent('a')).toMatchObject({ status: 'offline', mesh_id: null });
});

it('lets the agent finish what it has, with nothing new', async () => {
  const node = await fixture.node();
  const { agent } = await node.join('a');
  const { ref, end, dispatch } = await node.send(agent);
  await deregister();
  expect((await agent.nextOfType('close_request')).payload).toMatchObject({ grace_seconds: 30 });
  dispatch.result('last words');
  await end;
  expect((await fixture.message(ref)).assistant_output).toBe('last words');
  await errorOf(agent, 'DEREGISTERED');
  expect((await agent.closed).code).toBe(4410);
});

it('ends what an agent had that has lost its socket', async () => {
  const node = await fixture.node();
  const { agent } = await node.join('a');
  const { ref, end } = await node.send(agent);
  agent.kill();
  await until(() => node.server.stats().suspended === 1);
  await deregister();
  await end;
  expect((await fixture.message(ref)).error?.code).toBe('AGENT_DISCONNECTED');
  expect(node.server.stats().suspended).toBe(0);
});

it('is heard of at once by the node that has the socket', async () => {
  const node = await fixture.node(NO_TURN);
  const { agent } = await node.join('a');
  node.server.closeDeregistered((await deregister()).notice);
  expect((await agent.closed).code).toBe(4410);
});

it('is heard of at once by another process, over Redis', async () => {
  const { url } = await redisServer();
  const log = createLogger({ level: 'silent' });
  const link = (nodeId: string) => {
    const channel = new RedisChannel({ url, nodeId, log });
    const made = createRedisLink({ channel, nodeId, log });
    onTestFinished(async () => {
      await made.close();
      await channel.close();
    });
    return made;
  };
  const meshId = newId('mesh');
  const [here, there] = [link(newId('mesh')), link(meshId)];
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
  const node = await fixture.node(NO_TURN);
  const { agent } = await node.join('a');
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
  const node = await fixture.node();
  const { agent } = await node.join('a');
  const greeting = await node.socket('a');
  await deregister('inactivity');
  expect((await agent.closed).code).toBe(1001);
  greeting.send('hello', { instance_id: 'a' });
  await errorOf(greeting, 'INSTANCE_ID_MISMATCH');
  expect((await greeting.closed).code).toBe(1008);
  await registerAnew();
  await node.join('a');
});

it('followed by a registration before the node has seen either: the agent connects again, and resumes', async () => {
  const node = await fixture.node();
  const { agent, welcome } = await node.join('a');
  const { ref, end } = await node.send(agent);
  await database.query(
    "UPDATE agents SET status = 'offline', mesh_id = NULL WHERE tenant_id = $1 AND instance_id = 'a'", // what both leave
    [fixture.tenantId],
  );
  expect((await agent.closed).code).toBe(1001);
  const back = await node.join('a', { resume_token: welcome.resume_token });
  expect(back.welcome.resumed).toBe(true);
  (await receive(back.agent, ref)).result('after all');
  await end;
  expect((await fixture.message(ref)).state).toBe('completed');
});
