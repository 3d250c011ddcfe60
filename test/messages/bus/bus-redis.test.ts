import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { BusItem, ChunkBus } from '../../../messages/stream/bus.js';
import { createRedisBus } from '../../../messages/stream/redis-bus.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';
import { until } from '../../setup/until.js';
import { describeBus } from './bus-behaviour.js';
import { redisServer } from './redis-server.js';

const TENANT = 'ten_1';
const MESSAGE = 'msg_1';

function recordingLog() {
  return { info: vi.fn(), warn: vi.fn(), error: vi.fn() };
}

function redisBus(url: string, options: { retentionMs?: number } = {}) {
  const log = recordingLog();
  const bus = createRedisBus({ url, log, ...options });
  onTestFinished(() => bus.close());
  return { bus, log };
}

function follow(bus: ChunkBus, after = 0) {
  const seen: BusItem[] = [];
  bus.subscribe(TENANT, MESSAGE, after, (placed) => seen.push(placed));
  return { seen, texts: () => seen.flatMap(({ event }) => (event.kind === 'status_text' ? [event.text] : [])) };
}

const say = (bus: ChunkBus, text: string): void => bus.publish(TENANT, MESSAGE, { kind: 'status_text', text });

describeBus('redis', async () => createRedisBus({ url: (await redisServer()).url, log: recordingLog() }));

describe('redis bus between processes', () => {
  it('carries events from one connection to another', async () => {
    const { url } = await redisServer();
    const { bus: node } = redisBus(url);
    const { bus: api } = redisBus(url);
    say(node, 'before');
    const follower = follow(api);
    await until(() => follower.seen.length === 1);
    say(node, 'after');
    await until(() => follower.seen.length === 2);
    expect(follower.texts()).toEqual(['before', 'after']);
  });

  it('forgets a silent message, and a reader that held a cursor still sees what comes later', async () => {
    const { url } = await redisServer();
    const { bus } = redisBus(url, { retentionMs: 50 });
    const probe = new Redis(url);
    onTestFinished(() => probe.disconnect());
    const follower = follow(bus);
    for (let n = 0; n < 5; n += 1) say(bus, `${n}`);
    await until(() => follower.seen.length === 5);
    await until(async () => (await probe.exists(`fleet:chunks:${TENANT}:${MESSAGE}`)) === 0);
    say(bus, 'later');
    await until(() => follower.texts().includes('later'));
    expect(follower.texts()).toEqual(['0', '1', '2', '3', '4', 'later']);
  });

  it('drops what is published while Redis is away, says so once, and goes on when it is back', async () => {
    const server = await redisServer();
    const { bus, log } = redisBus(server.url);
    const follower = follow(bus);
    say(bus, 'one');
    await until(() => follower.seen.length === 1);
    await server.kill();
    for (let n = 0; n < 20; n += 1) say(bus, 'lost');
    await until(() => log.warn.mock.calls.length > 0);
    await server.start();
    await until(() => log.info.mock.calls.length > 0);
    say(bus, 'two');
    await until(() => follower.texts().includes('two'));
    expect(log.warn.mock.calls.length).toBe(1);
  });

  it('tells followers of a gap where a publisher could not reach Redis, which has kept the rest', async () => {
    const { url } = await redisServer();
    const proxy = await TcpProxy.to(url);
    const { bus: cutOff, log } = redisBus(proxy.urlOf(url));
    const { bus } = redisBus(url);
    const follower = follow(bus);
    say(cutOff, 'before');
    await until(() => follower.seen.length === 1);
    proxy.shut();
    say(cutOff, 'lost'); // into a connection whose end it has not seen
    await until(() => log.warn.mock.calls.length > 0);
    proxy.isShut = false;
    await until(() => log.info.mock.calls.length > 0);
    say(cutOff, 'after');
    await until(() => follower.texts().includes('after'));
    const kinds = follower.seen.map(({ event }) => (event.kind === 'status_text' ? event.text : event.kind));
    expect(kinds).toEqual(['before', 'gap', 'after']);
  });

  it('drops what a full Redis does not take, says so once, and goes on with a gap when there is room', async () => {
    const { url } = await redisServer();
    const operator = new Redis(url);
    onTestFinished(() => operator.disconnect());
    const { bus, log } = redisBus(url);
    const follower = follow(bus);
    say(bus, 'before');
    await until(() => follower.seen.length === 1);
    await operator.config('SET', 'maxmemory', '1');
    for (let n = 0; n < 20; n += 1) say(bus, 'lost');
    await until(() => log.warn.mock.calls.length > 0);
    expect(JSON.stringify(log.warn.mock.calls)).toContain('OOM');
    await operator.config('SET', 'maxmemory', '0');
    say(bus, 'after');
    await until(() => follower.texts().includes('after'));
    const kinds = follower.seen.map(({ event }) => (event.kind === 'status_text' ? event.text : event.kind));
    expect(kinds).toEqual(['before', 'gap', 'after']);
    await until(() => log.info.mock.calls.length > 0);
    expect(log.warn.mock.calls.length).toBe(1);
  });

  it('gives a follower that came while Redis was away everything once it is back', async () => {
    const server = await redisServer();
    await server.kill();
    const { bus, log } = redisBus(server.url);
    const follower = follow(bus);
    await until(() => log.warn.mock.calls.length > 0);
    await server.start();
    await until(() => log.info.mock.calls.length > 0);
    say(bus, 'hello');
    await until(() => follower.texts().includes('hello'));
    expect(follower.texts()).toEqual(['hello']);
  });
});
