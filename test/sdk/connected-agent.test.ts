import { expect, test, vi } from 'vitest';
import type { DispatchChunkPayload } from '../../contracts/frames.js';
import type { AgentTask } from '../../sdk/index.js';
import { gate } from '../setup/until.js';
import { aborted, codeOf, joined } from './agents.js';
import type { MeshServer } from './mesh-server.js';

const seqs = (mesh: MeshServer, id: string) =>
  mesh.of('dispatch_chunk', id).map(({ payload }) => (payload as DispatchChunkPayload).seq);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

test('what was streamed into a connection that had died silently comes again as a whole, with what was made meanwhile', async () => {
  const away = gate();
  const runs: string[] = [];
  const count = 2_000;
  const { mesh } = await joined((agent) =>
    agent.onMessage(async (task) => {
      runs.push(task.dispatchId);
      for (const _ of upTo(count)) await task.stream('word ');
      await away.promise;
      await task.stream('after');
    }),
  );
  const id = mesh.dispatch('go');
  await vi.waitFor(() => expect(seqs(mesh, id)).toEqual(upTo(count)), 10_000);
  mesh.welcome = { resumed: true };
  mesh.sockets[0]?.terminate();
  away.open();
  expect((await mesh.frame('hello', undefined, 2)).payload).toMatchObject({
    resume_token: 'resume-1',
    inflight: [{ dispatch_id: `dsp_${id}`, last_seq: -1 }],
  });
  const { result, chunk_count } = await mesh.result(id);
  expect(result).toMatchObject({ artifacts: [{ parts: [{ text: `${'word '.repeat(count)}after` }] }] });
  expect(chunk_count).toBe(count + 1);
  expect(seqs(mesh, id)).toEqual([...upTo(count), ...upTo(count + 1)]);

  mesh.dispatch('go', { id });
  await mesh.result(id, 2);
  expect(runs).toEqual([`dsp_${id}`]);
});

test('streams more than the connection takes at once without a gap', async () => {
  const { mesh } = await joined((agent) =>
    agent.onMessage(async (task) => {
      for (const _ of upTo(90)) await task.stream('x'.repeat(10_000));
    }),
  );
  const id = mesh.dispatch('much');
  expect((await mesh.result(id)).chunk_count).toBe(90);
  expect(seqs(mesh, id)).toEqual(upTo(90));
});

test('as many answers as may be in flight are held, when none of them is known to have arrived', async () => {
  const { mesh } = await joined((agent) => agent.onMessage((task) => task.text));
  const ids = upTo(200).map((index) => mesh.dispatch(String(index), { messageId: `msg_${index}` }));
  await vi.waitFor(() => expect(mesh.of('dispatch_result')).toHaveLength(200), 10_000);
  mesh.welcome = { resumed: true };
  mesh.sockets[0]?.terminate();
  const { inflight } = (await mesh.frame('hello', undefined, 2)).payload as { inflight: { dispatch_id: string }[] };
  expect(inflight.map(({ dispatch_id }) => dispatch_id).sort()).toEqual(ids.map((id) => `dsp_${id}`).sort());
});

test.each<[string, string, number | undefined, (mesh: MeshServer, id: string) => unknown]>([
  ['is canceled', 'CANCELED', undefined, (mesh, id) => mesh.cancel(id)],
  ['has its deadline', 'DEADLINE_EXCEEDED', 20, () => undefined],
  [
    'is lost with its connection, which is not resumed',
    'AGENT_DISCONNECTED',
    undefined,
    async (mesh) => {
      mesh.sockets[0]?.terminate();
      await mesh.frame('heartbeat', undefined, 2);
    },
  ],
])('a task that %s is aborted with %s, and nothing more of it is sent', async (_what, code, deadlineMs, end) => {
  const codes: string[] = [];
  const answer = async (task: AgentTask) => {
    if (task.text !== 'wait') return 'done';
    await aborted(task.signal);
    codes.push(codeOf(task.signal));
    await task.stream('too late');
    return 'too late';
  };
  const { mesh } = await joined((agent) => agent.onMessage(answer));
  const id = mesh.dispatch('wait', { deadlineMs });
  await mesh.frame('dispatch_ack', id);
  await end(mesh, id);
  await vi.waitFor(() => expect(codes).toEqual([code]));
  await mesh.result(mesh.dispatch('next'));
  expect([...mesh.of('dispatch_result', id), ...mesh.of('dispatch_chunk', id)]).toEqual([]);
});

test('heartbeats and pings as often as the mesh asks for, with the status that it reports', async () => {
  const { mesh, agent } = await joined(
    () => undefined,
    { maxConcurrentSessions: 3 },
    (server) => {
      server.welcome = { heartbeat_interval_ms: 20, ping_interval_ms: 20 };
    },
  );
  expect((await mesh.frame('heartbeat', undefined, 3)).payload).toMatchObject({
    instance_id: 'shop-1',
    status: 'available',
    max_concurrent_sessions: 3,
  });
  agent.reportStatus('unhealthy');
  await vi.waitFor(() => expect(mesh.of('heartbeat').at(-1)?.payload.status).toBe('unhealthy'));
  await mesh.frame('ping', undefined, 5);
  expect(mesh.sockets).toHaveLength(1);
});
