import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LIMITS } from '../../contracts/limits.js';
import { openDb } from '../../db/pool.js';
import { uuidv7 } from '../../runtime/ids.js';
import { createLogger } from '../../runtime/logger.js';
import { TcpProxy } from '../setup/platform/tcp-proxy.js';
import { until } from '../setup/until.js';
import { errorOf, type FixtureAgent } from './fixture-agent.js';
import { MeshFixture } from './mesh-fixture.js';
import { database, fixture, useMesh } from './use-mesh.js';

useMesh('a', 'b');

const errors = (agent: FixtureAgent, code: string) =>
  agent.received.filter((frame) => frame.type === 'error' && frame.payload.code === code);

/** Nobody can look a dispatch up until the test lets go. */
async function lockDispatches(): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query('BEGIN; LOCK TABLE dispatches IN ACCESS EXCLUSIVE MODE');
  return async () => void (await client.query('COMMIT'));
}

describe('an agent that sends too much', () => {
  it('waits for its answers while others get theirs', async () => {
    const node = await fixture.node();
    const { agent: flooder } = await node.join('a');
    const { agent: other } = await node.join('b');
    const count = 20_000;
    for (let index = 0; index < count; index += 1) flooder.send('ping', {});
    other.send('ping', { nonce: 'mine' });
    await other.nextOfType('pong');
    expect(flooder.count('pong')).toBeLessThan(count / 2);
    await until(() => flooder.count('pong') === count);
  });

  it('is not read any further while its frames wait, and loses none; others are not held up', async () => {
    const node = await fixture.node({ clocks: { pingIntervalMs: 300 } });
    const { agent: flooder } = await node.join('a');
    const { agent: other } = await node.join('b');
    const unlock = await lockDispatches();
    const result = 'x'.repeat(500_000);
    const count = 40;
    for (let index = 0; index < count; index += 1) flooder.send('dispatch_result', { result }, uuidv7());
    const pings = other.count('ping');
    await until(() => other.count('ping') > pings + 5);
    other.send('ping', { nonce: 'mine' });
    await other.nextOfType('pong');
    expect(flooder.unsent).toBeGreaterThan(8 * LIMITS.frameBytes);
    expect(flooder.isOpen).toBe(true);
    await unlock();
    await until(() => errors(flooder, 'UNKNOWN_DISPATCH').length === count);
    expect(flooder.isOpen).toBe(true);
  });

  it('of frames that cost a look into the database hears RATE_LIMITED, and its work goes on', async () => {
    const node = await fixture.node();
    const { agent } = await node.join('a');
    const { ref, end, dispatch } = await node.send(agent);
    const ids = Array.from({ length: 2_000 }, () => {
      const id = uuidv7();
      agent.send('dispatch_result', { result: 'x' }, id);
      return id;
    });
    dispatch.result('hi');
    await end;
    expect((await fixture.message(ref)).state).toBe('completed');
    await until(() => errors(agent, 'RATE_LIMITED').length + errors(agent, 'UNKNOWN_DISPATCH').length === ids.length);
    const limited = errors(agent, 'RATE_LIMITED');
    const unknown = errors(agent, 'UNKNOWN_DISPATCH');
    expect(unknown.length).toBeGreaterThanOrEqual(512);
    expect(limited.length).toBeGreaterThan(500);
    expect(limited[0]?.payload).toMatchObject({ retryable: true });
    const answered = new Set([...limited, ...unknown].map((frame) => frame.in_reply_to));
    expect(answered).toEqual(new Set(ids));
    const beats = new Set(Array.from({ length: 500 }, () => agent.send('heartbeat', { status: 'available' })));
    await until(() => errors(agent, 'RATE_LIMITED').some((frame) => beats.has(frame.in_reply_to ?? '')));
    expect(agent.isOpen).toBe(true);
  });

  it('about a dispatch that has ended hears so each time, for one look', async () => {
    const [here, there] = [await fixture.node(), await fixture.node()];
    const { agent: first } = await here.join('a');
    const { end, dispatch } = await here.send(first);
    dispatch.result('done');
    await end;
    const { agent } = await there.join('a');
    for (let seq = 0; seq < 1_000; seq += 1) agent.send('dispatch_chunk', { seq }, dispatch.frame.id);
    await until(() => errors(agent, 'DISPATCH_ALREADY_TERMINAL').length === 1_000);
    expect(agent.isOpen).toBe(true);
  });
});

describe('an agent that sends badly', () => {
  it('is closed with 1008 over a message of more than 1,024 pieces', async () => {
    const { agent } = await (await fixture.node()).join('a');
    for (let index = 0; index < 1_025; index += 1) agent.sendFragment(' ', false);
    expect((await agent.closed).code).toBe(1008);
  });

  it('may send a frame in pieces', async () => {
    const { agent } = await (await fixture.node()).join('a');
    const id = uuidv7();
    const text = JSON.stringify({ v: 1, type: 'ping', id, ts: new Date().toISOString(), payload: { nonce: 'n' } });
    agent.sendFragment(text.slice(0, 40), false);
    agent.sendFragment(text.slice(40), true);
    expect(await agent.nextOfType('pong')).toMatchObject({ in_reply_to: id, payload: { nonce: 'n' } });
  });

  it('and never ends its message is taken for dead', async () => {
    const node = await fixture.node({ clocks: { pingIntervalMs: 30 } });
    const agent = await node.socket('a', { mute: true });
    await agent.hello();
    agent.sendFragment('{', false);
    await agent.closed;
    expect(node.server.stats()).toMatchObject({ ready: 0, suspended: 1 });
  });
});

describe('an agent that does not read', () => {
  it('is told BACKPRESSURE and closed with 1013 once it reads again', async () => {
    const node = await fixture.node();
    const { agent } = await node.join('a');
    const { agent: other } = await node.join('b');
    agent.pause();
    const nonce = 'x'.repeat(256);
    const flood = () => {
      for (let count = 0; count < 1_000; count += 1) agent.send('ping', { nonce });
      return node.server.stats().suspended === 1;
    };
    await until(flood, { what: 'the end of the connection' });
    other.send('ping', { nonce: 'mine' });
    await other.nextOfType('pong');
    agent.resume();
    await errorOf(agent, 'BACKPRESSURE');
    expect((await agent.closed).code).toBe(1013);
  });
});

describe('a hello that cannot be answered', () => {
  it('is told INTERNAL and closed with 1011; the next one is answered', async () => {
    const path = await TcpProxy.to(database.url);
    const db = openDb({ url: path.urlOf(database.url), log: createLogger({ level: 'silent' }) });
    onTestFinished(() => db.close());
    const cutOff = await new MeshFixture(database, db).reset();
    await cutOff.register('a');
    const node = await cutOff.node();
    const agent = await node.socket('a');
    path.shut();
    agent.send('hello', { instance_id: 'a' });
    expect((await errorOf(agent, 'INTERNAL')).payload).toMatchObject({ retryable: true });
    expect((await agent.closed).code).toBe(1011);
    path.isShut = false;
    await until(async () => (await node.join('a')).welcome.resumed === false);
  });
});
