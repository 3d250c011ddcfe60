import { describe, expect, it } from 'vitest';
import { uuidv7 } from '../../../runtime/ids.js';
import { until } from '../../setup/until.js';
import { errorOf } from '../fixture-agent.js';
import { finishes, fixture, joined, useMesh } from '../use-mesh.js';

useMesh('a');

const frame = (type: string, payload: unknown, more: object = {}) =>
  JSON.stringify({ v: 1, type, id: uuidv7(), ts: new Date().toISOString(), payload, ...more });
const status = async () => (await fixture.agent('a')).status;

describe('hello', () => {
  it('is told where to resume, on a node with an address of its own', async () => {
    const { welcome } = await joined({ nodeUrl: () => 'https://node-1.example:8443' });
    expect(welcome.resume_url).toBe('wss://node-1.example:8443/agents/connect?instance_id=a');
  });

  it('is answered with welcome, and by then the agent is routable', async () => {
    const node = await fixture.node();
    const declared = {
      max_concurrent_sessions: 7,
      max_concurrent_tasks: 9,
      agent_version: '1.2.3',
      agent_card: { name: 'A' },
      skills: [{ id: 's' }],
      tools: ['t', { name: 'u' }],
    };
    const { welcome } = await node.join('a', declared);
    expect(welcome).toEqual({
      connection_id: expect.stringMatching(/^con_/),
      mesh_id: node.meshId,
      resumed: false,
      replayed_dispatches: [],
      resume_token: expect.any(String),
      resume_window_ms: 60_000,
      heartbeat_interval_ms: 30_000,
      ping_interval_ms: 30_000,
      limits: { max_frame_bytes: 1_048_576, max_inflight: 256 },
      server_time: expect.stringMatching(/^\d{4}-.*Z$/),
      token_expires_at: expect.stringMatching(/^\d{4}-.*Z$/),
      reauth: true,
    });
    expect(await fixture.agent('a')).toMatchObject({
      status: 'available',
      mesh_id: node.meshId,
      connection_epoch: 1,
      ...declared,
    });
    expect(await fixture.events('agent.health_changed')).toEqual([
      { agent_type: 'worker', instance_id: 'a', status: 'available', previous_status: 'offline' },
    ]);
    expect(await fixture.events('agent.capacity_changed')).toEqual([
      { agent_type: 'worker', instance_id: 'a', current_sessions: 0, max_concurrent_sessions: 7 },
    ]);
    expect(node.server.stats()).toEqual({
      ready: 1,
      draining: 0,
      suspended: 0,
      inflight: 0,
      handshakes: { accepted: 1, refused: 0 },
      transitions: { hello: 1, welcomed: 1 },
    });
  });

  it('must come in time', async () => {
    const node = await fixture.node({ clocks: { helloTimeoutMs: 30 } });
    const agent = await node.socket('a');
    await errorOf(agent, 'HELLO_TIMEOUT');
    expect((await agent.closed).code).toBe(4408);
  });

  it.each<[string, string, object, string, number]>([
    ['come first', 'ping', {}, 'BAD_FRAME', 1002],
    ['come before frames that nobody knows', 'applause', {}, 'BAD_FRAME', 1002],
    ['name the instance of the address', 'hello', { instance_id: 'b' }, 'INSTANCE_ID_MISMATCH', 1008],
  ])('must %s', async (_what, type, payload, code, closeCode) => {
    const agent = await (await fixture.node()).socket('a');
    const id = agent.send(type, payload);
    const { in_reply_to } = await errorOf(agent, code);
    if (code === 'BAD_FRAME') expect(in_reply_to).toBe(id);
    expect((await agent.closed).code).toBe(closeCode);
  });

  it('may be followed at once by other frames: they are read after welcome', async () => {
    const agent = await (await fixture.node()).socket('a');
    agent.send('hello', { instance_id: 'a' });
    agent.send('heartbeat', { max_concurrent_sessions: 3 });
    agent.send('ping', { nonce: 'early' });
    expect((await agent.nextOfType('pong')).payload).toEqual({ nonce: 'early' });
    expect(agent.received.map(({ type }) => type)).toEqual(['welcome', 'pong']);
    await until(async () => (await fixture.agent('a')).max_concurrent_sessions === 3);
  });

  it('must come once', async () => {
    const { agent } = await joined();
    agent.send('hello', { instance_id: 'a' });
    await errorOf(agent, 'DUPLICATE_HELLO');
    expect((await agent.closed).code).toBe(4429);
  });

  it('is refused when the instance was deregistered after the handshake', async () => {
    const agent = await (await fixture.node()).socket('a');
    await fixture.setAgent('a', "deregistered_at = now(), deregistration_cause = 'explicit'");
    agent.send('hello', { instance_id: 'a' });
    await errorOf(agent, 'DEREGISTERED');
    expect((await agent.closed).code).toBe(4410);
  });
});

describe('frames', () => {
  const GARBAGE: [name: string, data: string | Buffer, code: number][] = [
    ['not JSON', 'nonsense', 1002],
    ['bad UTF-8', Buffer.from([0xff, 0xfe]), 1007],
    ['a binary message', Buffer.from(frame('ping', {})), 1003],
    ['more than 1 MiB', frame('ping', { nonce: 'x'.repeat(1_048_576) }), 1009],
  ];
  it('that nobody can read close the socket', async () => {
    const node = await fixture.node();
    for (const [name, data, code] of GARBAGE) {
      const { agent } = await node.join('a');
      if (name === 'bad UTF-8') agent.sendText(data as Buffer);
      else agent.sendRaw(data);
      expect([name, (await agent.closed).code]).toEqual([name, code]);
    }
    await node.join('a');
  });

  it('of an unknown type are refused and the socket stays', async () => {
    const { agent } = await joined();
    const id = agent.send('applause', { loud: true });
    expect((await errorOf(agent, 'BAD_FRAME')).in_reply_to).toBe(id);
    agent.send('ping', { nonce: 'n' });
    expect((await agent.nextOfType('pong')).payload).toEqual({ nonce: 'n' });
  });

  it('are answered in order, however many come at once', async () => {
    const { agent } = await joined();
    const nonces = Array.from({ length: 500 }, (_, index) => String(index));
    for (const nonce of nonces) agent.send('ping', { nonce });
    const answers: unknown[] = [];
    for (const _ of nonces) answers.push((await agent.nextOfType('pong')).payload.nonce);
    expect(answers).toEqual(nonces);
  });

  it('with a heartbeat change the status and what counts as load, with an event', async () => {
    const { agent } = await joined();
    agent.send('heartbeat', { status: 'unhealthy', current_sessions: 99 });
    await until(async () => (await status()) === 'unhealthy');
    agent.send('heartbeat', { status: 'available', max_concurrent_sessions: 3 });
    await until(async () => (await status()) === 'available');
    expect((await fixture.agent('a')).max_concurrent_sessions).toBe(3);
    const changes = (await fixture.events('agent.health_changed')).map((event) => event.status);
    expect(changes).toEqual(['available', 'unhealthy', 'available']);
    agent.send('heartbeat', { current_sessions: 0 });
    await until(async () => (await fixture.events('agent.capacity_changed')).length === 3);
    expect(await fixture.events('agent.capacity_changed')).toMatchObject([
      { current_sessions: 99, max_concurrent_sessions: 0 },
      { current_sessions: 99, max_concurrent_sessions: 3 },
      { current_sessions: 0, max_concurrent_sessions: 3 },
    ]);
    agent.send('heartbeat', { instance_id: 'b' });
    expect((await agent.closed).code).toBe(1008);
  });
});

describe('a connection ends', () => {
  it('with 1001 after three missed pings: the agent is offline, and its work waits for it', async () => {
    const node = await fixture.node({ clocks: { pingIntervalMs: 500 } });
    const agent = await node.socket('a', { mute: true });
    await agent.hello();
    const { ref } = await node.send(agent);
    expect((await agent.closed).code).toBe(1001);
    expect(agent.count('ping')).toBe(3);
    await until(async () => (await status()) === 'offline');
    expect((await fixture.agent('a')).mesh_id).toBeNull();
    expect(node.server.stats()).toMatchObject({ suspended: 1, inflight: 1 });
    expect((await fixture.message(ref)).state).toBe('working');
  });

  it('not while its pings are answered', async () => {
    const { agent } = await joined({ clocks: { pingIntervalMs: 10 } });
    await until(() => agent.count('ping') > 8);
    expect(agent.isOpen).toBe(true);
  });

  it('with 1000 after a close_request of the agent when nothing is in flight', async () => {
    const { agent } = await joined();
    agent.send('close_request', { reason: 'going home' });
    expect((await agent.closed).code).toBe(1000);
    await until(async () => (await status()) === 'offline');
  });

  it('with 4401 when its token ends, and with a new one the agent goes on with its work', async () => {
    const node = await fixture.node();
    const { agent, welcome } = await node.join('a');
    const { ref, end } = await node.send(agent);
    agent.send('reauth', { token: await fixture.token(3) });
    await errorOf(agent, 'TOKEN_EXPIRED');
    expect((await agent.closed).code).toBe(4401);
    const back = await node.join('a', { resume_token: welcome.resume_token });
    expect(back.welcome).toMatchObject({ resumed: true, replayed_dispatches: [ref.dispatch_id] });
    await finishes(back.agent, ref, end);
  });

  it('with 4409 when a newer one of the same instance says hello, on this node or another', async () => {
    const [here, there] = [await fixture.node(), await fixture.node()];
    const first = await here.join('a');
    const second = await here.join('a');
    await errorOf(first.agent, 'REPLACED');
    expect((await first.agent.closed).code).toBe(4409);
    await there.join('a');
    expect((await second.agent.closed).code).toBe(4409);
    expect(await fixture.agent('a')).toMatchObject({ status: 'available', mesh_id: there.meshId, connection_epoch: 3 });
    expect((await fixture.events('agent.health_changed')).length).toBe(1);
  });
});
