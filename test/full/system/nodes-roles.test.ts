import { expect, test } from 'vitest';
import type { Task } from '../../../contracts/a2a/a2a.js';
import { AgentRegisterResponse } from '../../../contracts/api/agents.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { dispatched, echo, serve } from '../../setup/agent.js';
import { startPlatform } from '../../setup/platform/platform.js';
import type { TestPlatform } from '../../setup/platform/platform-process.js';
import { assembled, StreamReader } from '../../setup/stream-reader.js';
import { hold, joinType, to } from '../../system/fixture.js';

const redis = await redisServer();
const shared = await startPlatform({ REDIS_URL: redis.url, QUEUE_WAIT_MS: '60000' });
await shared.platform.stop(); // it made the credential; from here on roles run apart
const [mesh, otherMesh] = [await shared.startPeer({ roles: 'mesh' }), await shared.startPeer({ roles: 'mesh' })];
const env = { FLEET_MESH_URL: mesh.devJson().mesh_url };
const worker = await shared.startPeer({ roles: 'worker' });
const [api, otherApi] = [await shared.startPeer({ roles: 'api', env }), await shared.startPeer({ roles: 'api', env })];

/** Registers by an API node and connects to a mesh node. */
async function join({ client }: TestPlatform, { devJson }: Pick<TestPlatform, 'devJson'>) {
  const body = { instance_id: 'worker-1', agent_type: 'worker', deployment_mode: 'connected' };
  const { connect_url } = await client.ok('/agents/register', body, AgentRegisterResponse);
  expect(new URL(connect_url ?? '').host).toBe(new URL(env.FLEET_MESH_URL).host);
  return joinType({ client, devJson }, 'worker');
}

test('roles that run apart send, stream and outlive each other', async () => {
  const agent = await join(api, { devJson: () => otherMesh.devJson() });
  const message = { kind: 'message', messageId: 'stream', role: 'user', parts: [{ kind: 'text', text: 'stream' }] };
  const stream = new StreamReader(api.client, 'message/stream', { message, ...to('worker') });
  const dispatch = dispatched(agent, await agent.nextOfType('dispatch', 60_000));
  dispatch.chunk(0, 'one ');
  await stream.has(2);
  await api.kill9();
  await stream.done;
  dispatch.chunk(1, 'two');
  const task = { id: (stream.events[0] as Task).id };
  const rest = new StreamReader(otherApi.client, 'tasks/resubscribe', task, stream.lastEventId);
  dispatch.result('', { chunk_count: 2 });
  await rest.done;
  expect([...assembled([...stream.events, ...rest.events]).values()]).toEqual(['one two']);

  const lost = await hold(otherApi.client, agent, to('worker'));
  await otherMesh.kill9();
  const { error } = await otherApi.client.untilState(lost.task.id, 'failed', 60_000);
  expect(error?.code).toBe('AGENT_DISCONNECTED');
  const back = await join(otherApi, { devJson: () => mesh.devJson() });
  serve(back, echo);
  expect((await otherApi.client.send('again', to('worker'))).status.state).toBe('completed');

  await worker.kill9();
  const waiting = otherApi.client.send('until a worker comes', to('worker'));
  await shared.startPeer({ roles: 'worker' });
  expect((await waiting).status.state).toBe('completed');
  back.close();
}, 300_000);
