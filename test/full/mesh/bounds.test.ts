import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../contracts/limits.js';
import { uuidv7 } from '../../../runtime/ids.js';
import { errorOf, type FixtureAgent } from '../../mesh/fixture-agent.js';
import { atWork, cutOffFixture, database, fixture, joined, useMesh } from '../../mesh/use-mesh.js';
import { RowLock } from '../../setup/row-lock.js';
import { until } from '../../setup/until.js';

useMesh('a', 'b');

const errors = (agent: FixtureAgent, code: string) =>
  agent.received.filter((frame) => frame.type === 'error' && frame.payload.code === code);

describe('an agent that sends too much', () => {
  it('waits for its answers while others get theirs', async () => {
    const { node, agent: flooder } = await joined();
    const { agent: other } = await node.join('b');
    const count = 8_000;
    for (let index = 0; index < count; index += 1) flooder.send('ping', {});
    other.send('ping', { nonce: 'mine' });
    await other.nextOfType('pong');
    expect(flooder.count('pong')).toBeLessThan(count / 2);
    await until(() => flooder.count('pong') === count);
  });

  it('is not read any further while its frames wait, and loses none; others are not held up', async () => {
    const { node, agent: flooder } = await joined({ clocks: { pingIntervalMs: 300 } });
    const { agent: other } = await node.join('b');
    const lookUps = await RowLock.onTables(database.url, ['dispatches']);
    const result = 'x'.repeat(500_000);
    const count = 40;
    for (let index = 0; index < count; index += 1) flooder.send('dispatch_result', { result }, uuidv7());
    const pings = other.count('ping');
    await until(() => other.count('ping') > pings + 5);
    other.send('ping', { nonce: 'mine' });
    await other.nextOfType('pong');
    expect(flooder.unsent).toBeGreaterThan(8 * LIMITS.frameBytes);
    expect(flooder.isOpen).toBe(true);
    await lookUps.release();
    await until(() => errors(flooder, 'UNKNOWN_DISPATCH').length === count);
    expect(flooder.isOpen).toBe(true);
  });

  it('of frames that cost a look into the database hears RATE_LIMITED, and its work goes on', async () => {
    const { agent, ref, end, dispatch } = await atWork();
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
    const { end, dispatch } = await atWork();
    dispatch.result('done');
    await end;
    const { agent } = await joined();
    for (let seq = 0; seq < 1_000; seq += 1) agent.send('dispatch_chunk', { seq }, dispatch.frame.id);
    await until(() => errors(agent, 'DISPATCH_ALREADY_TERMINAL').length === 1_000);
    expect(agent.isOpen).toBe(true);
  });
});

describe('an agent that sends badly', () => {
  it('is closed with 1008 over a message of more than 1,024 pieces', async () => {
    const { agent } = await joined();
    for (let index = 0; index < 1_025; index += 1) agent.sendFragment(' ', false);
    expect((await agent.closed).code).toBe(1008);
  });

  it('may send a frame in pieces', async () => {
    const { agent } = await joined();
    const id = uuidv7();
    const text = JSON.stringify({ v: 1, type: 'ping', id, ts: new Date().toISOString(), payload: { nonce: 'n' } });
    agent.sendFragment(text.slice(0, 40), false);
    agent.sendFragment(text.slice(40), true);
    expect(await agent.nextOfType('pong')).toMatchObject({ in_reply_to: id, payload: { nonce: 'n' } });
  });
});

describe('an agent that does not read', () => {
  it('is told BACKPRESSURE and closed with 1013 once it reads again', async () => {
    const { node, agent } = await joined();
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
    const { path, cutOff } = await cutOffFixture();
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
