import { expect, test } from 'vitest';
import type { Task } from '../../../contracts/a2a/a2a.js';
import { AgentRegisterResponse } from '../../../contracts/api/agents.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { connectRaw, dispatched, echo, type RawAgent, serve } from '../../setup/agent.js';
import { startPlatform } from '../../setup/platform/platform.js';
import type { TestPlatform } from '../../setup/platform/platform-process.js';
import { assembled, StreamReader } from '../../setup/stream-reader.js';

const redis = await redisServer();
const shared = await startPlatform({ REDIS_URL: redis.url, QUEUE_WAIT_MS: '60000' });
await shared.platform.stop(); // it made the credential; from here on roles run apart
const mesh = await shared.startPeer({ roles: 'mesh' });
const otherMesh = await shared.startPeer({ roles: 'mesh' });
const env = { FLEET_MESH_URL: mesh.devJson().mesh_url };
let worker = await shared.startPeer({ roles: 'worker' });
const api = await shared.startPeer({ roles: 'api', env });
const otherApi = await shared.startPeer({ roles: 'api', env });

const TYPE = 'worker';
const params = (text: string) => ({
  message: { kind: 'message', messageId: crypto.randomUUID(), role: 'user', parts: [{ kind: 'text', text }] },
  metadata: { agent_type: TYPE },
});

/** Registers by an API node and connects to a mesh node. */
async function join(byApi: TestPlatform, toMesh: TestPlatform): Promise<RawAgent> {
  const body = { instance_id: 'worker-1', agent_type: TYPE, deployment_mode: 'connected' };
  const { connect_url } = await byApi.client.ok('/agents/register', body, AgentRegisterResponse);
  expect(new URL(connect_url ?? '').host).toBe(new URL(env.FLEET_MESH_URL).host);
  const { mesh_url, ca_file } = toMesh.devJson();
  const token = await byApi.client.token();
  const agent = await connectRaw({ meshUrl: mesh_url, caFile: ca_file, token, instanceId: 'worker-1' });
  await agent.hello();
  return agent;
}

test('roles that run apart send, stream and outlive each other', async () => {
  const agent = await join(api, otherMesh);
  const stream = new StreamReader(api.client, 'message/stream', params('stream'));
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

  const lost = await otherApi.client.send('lost with its node', { metadata: { agent_type: TYPE }, blocking: false });
  await agent.nextOfType('dispatch', 60_000);
  await otherMesh.kill9();
  expect((await otherApi.client.untilState(lost.id, 'failed', 60_000)).error?.code).toBe('AGENT_DISCONNECTED');
  const back = await join(otherApi, mesh);
  serve(back, echo);
  expect((await otherApi.client.send('again', { metadata: { agent_type: TYPE } })).status.state).toBe('completed');

  await worker.kill9();
  const waiting = otherApi.client.send('until a worker comes', { metadata: { agent_type: TYPE } });
  worker = await shared.startPeer({ roles: 'worker' });
  expect((await waiting).status.state).toBe('completed');
  back.close();
}, 300_000);
