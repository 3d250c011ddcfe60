import { expect, onTestFinished, test } from 'vitest';
import { connectRateLimits, RateLimit } from '../../../api/rate-limit.js';
import { type ServedApi, serveApi } from '../../api/served-api.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { until } from '../../setup/until.js';

async function connected(url: string) {
  const redis = connectRateLimits(url);
  onTestFinished(() => redis.disconnect());
  await until(() => redis.status === 'ready', { what: 'a connection to Redis' });
  return redis;
}

/** Two nodes' limits of three in a minute on one Redis. */
async function twoNodes() {
  const server = await redisServer();
  const clients = [await connected(server.url), await connected(server.url)] as const;
  const limits = clients.map((redis) => new RateLimit({ name: 'test', limit: 3, windowSeconds: 60, redis }));
  const [one, other] = limits as [RateLimit, RateLimit];
  return { server, clients, one, other };
}

const isOpen = (limit: RateLimit, key: string): boolean => {
  try {
    limit.check(key, 'wait');
    return true;
  } catch {
    return false;
  }
};

const isOpenAfterAsking = async (limit: RateLimit, key: string): Promise<boolean> => {
  await limit.learn(key);
  return isOpen(limit, key);
};

test('what one node counts is counted at the others, from their own first count or question on', async () => {
  const { one, other } = await twoNodes();
  for (let count = 0; count < 3; count += 1) one.add('a');
  expect([isOpen(one, 'a'), isOpen(other, 'a')]).toEqual([false, true]);
  other.add('a');
  await until(() => !isOpen(other, 'a'), { what: 'the count of all nodes' });
  for (let count = 0; count < 3; count += 1) one.add('b');
  await until(async () => !(await isOpenAfterAsking(other, 'b')), { what: 'the count of b' });
  expect(isOpen(other, 'c')).toBe(true);
});

test('while Redis is away each process limits by itself, and all do together when it is back', async () => {
  const { server, clients, one, other } = await twoNodes();
  await server.kill();
  await until(() => clients.every(({ status }) => status !== 'ready'), { what: 'the loss of Redis' });
  await one.learn('a'); // answers although Redis stays away
  for (let count = 0; count < 3; count += 1) one.add('a');
  expect([isOpen(one, 'a'), isOpen(other, 'a')]).toEqual([false, true]);
  expect(clients.map(({ status }) => status)).not.toContain('ready');
  await server.start();
  await until(() => clients.every(({ status }) => status === 'ready'), { what: 'Redis' });
  for (let count = 0; count < 3; count += 1) other.add('b');
  await until(async () => !(await isOpenAfterAsking(one, 'b')), { what: 'the count of b' });
});

test('ten wrong guesses at one node are the limit at another', async () => {
  const { server, clients } = await twoNodes();
  const apis = await Promise.all(clients.map((redis) => serveApi({ redis })));
  const [one, other] = apis as [ServedApi, ServedApi];
  const body = JSON.stringify({ client_id: 'cred_x', client_secret: 'guess', agent_type: 'credential' });
  const guess = async ({ client }: ServedApi) =>
    (await client.raw('/auth/get_token', body, { 'content-type': 'application/json' })).status;
  for (let count = 0; count < 10; count += 1) expect(await guess(one)).toBe(401);
  expect(await guess(other)).toBe(429);
  await server.kill();
  await until(() => clients.every(({ status }) => status !== 'ready'), { what: 'the loss of Redis' });
  expect(await guess(one)).toBe(429);
});
