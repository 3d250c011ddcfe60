import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { RedisBus } from '../../../messages/stream/redis-bus.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';
import { until } from '../../setup/until.js';
import { describeBus, onBus } from './bus-behaviour.js';
import { redisServer } from './redis-server.js';

function recordingLog() {
  return { info: vi.fn(), warn: vi.fn(), error: vi.fn() };
}

function redisBus(url: string, options: { retentionMs?: number } = {}) {
  const log = recordingLog();
  const bus = new RedisBus({ url, log, ...options });
  onTestFinished(() => bus.close());
  const { follow, say } = onBus(bus);
  return {
    say,
    follow: () => {
      const follower = follow();
      const seen = () => follower.events().map((event) => (event.kind === 'status_text' ? event.text : event.kind));
      return { seen, ends: (last: string) => until(() => seen().at(-1) === last, { what: last }) };
    },
    log,
    warned: () => until(() => log.warn.mock.calls.length > 0, { what: 'a warning' }),
    recovered: () => until(() => log.info.mock.calls.length > 0, { what: 'the end of the outage in the log' }),
  };
}

describeBus('redis', async () => new RedisBus({ url: (await redisServer()).url, log: recordingLog() }));

describe('redis bus between processes', () => {
  it('carries events from one connection to another', async () => {
    const { url } = await redisServer();
    const [node, api] = [redisBus(url), redisBus(url)];
    node.say('before');
    const { seen, ends } = api.follow();
    await ends('before');
    node.say('after');
    await ends('after');
    expect(seen()).toEqual(['before', 'after']);
  });

  it('forgets a silent message, and a reader that held a cursor still sees what comes later', async () => {
    const { url } = await redisServer();
    const { say, follow } = redisBus(url, { retentionMs: 50 });
    const probe = new Redis(url);
    onTestFinished(() => probe.disconnect());
    const { seen, ends } = follow();
    say('0', '1', '2', '3', '4');
    await ends('4');
    await until(async () => (await probe.exists('fleet:chunks:ten_1:msg_1')) === 0);
    say('later');
    await ends('later');
    const texts = seen().filter((each) => each !== 'gap'); // a late reader cannot know that it missed nothing
    expect(texts).toEqual(['0', '1', '2', '3', '4', 'later']);
  });

  it('drops what is published while Redis is away, says so once, and goes on when it is back', async () => {
    const server = await redisServer();
    const { say, follow, log, warned, recovered } = redisBus(server.url);
    const { ends } = follow();
    say('one');
    await ends('one');
    await server.kill();
    for (let n = 0; n < 20; n += 1) say('lost');
    await warned();
    await server.start();
    await recovered();
    say('two');
    await ends('two');
    expect(log.warn.mock.calls.length).toBe(1);
  });

  it('tells followers of a gap where a publisher could not reach Redis, which has kept the rest', async () => {
    const { url } = await redisServer();
    const proxy = await TcpProxy.to(url);
    const cutOff = redisBus(proxy.urlOf(url));
    const { seen, ends } = redisBus(url).follow();
    cutOff.say('before');
    await ends('before');
    proxy.shut();
    cutOff.say('lost'); // into a connection whose end it has not seen
    await cutOff.warned();
    proxy.isShut = false;
    await cutOff.recovered();
    cutOff.say('after');
    await ends('after');
    expect(seen()).toEqual(['before', 'gap', 'after']);
  });

  it('drops what a full Redis does not take, says so once, and goes on with a gap when there is room', async () => {
    const { url } = await redisServer();
    const operator = new Redis(url);
    onTestFinished(() => operator.disconnect());
    const { say, follow, log, warned, recovered } = redisBus(url);
    const { seen, ends } = follow();
    say('before');
    await ends('before');
    await operator.config('SET', 'maxmemory', '1');
    for (let n = 0; n < 20; n += 1) say('lost');
    await warned();
    expect(JSON.stringify(log.warn.mock.calls)).toContain('OOM');
    await operator.config('SET', 'maxmemory', '0');
    say('after');
    await ends('after');
    expect(seen()).toEqual(['before', 'gap', 'after']);
    await recovered();
    expect(log.warn.mock.calls.length).toBe(1);
  });

  it('gives a follower that came while Redis was away everything once it is back', async () => {
    const server = await redisServer();
    await server.kill();
    const { say, follow, warned, recovered } = redisBus(server.url);
    const { seen, ends } = follow();
    await warned();
    await server.start();
    await recovered();
    say('hello');
    await ends('hello');
    expect(seen()).toEqual(['hello']);
  });
});
