import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { DatabaseClock } from '../../db/database-clock.js';
import { DispatchLink } from '../../mesh/nodes/dispatch-link.js';
import { RedisChannel } from '../../mesh/nodes/redis-channel.js';
import type { OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { createLogger } from '../../runtime/logger.js';
import { redisServer } from '../messages/bus/redis-server.js';
import { cleanUp } from '../setup/clean-up.js';
import { freshDatabase } from '../setup/database.js';
import { TcpProxy } from '../setup/platform/tcp-proxy.js';
import { until } from '../setup/until.js';

const log = createLogger({ level: 'silent' });
const clock = new DatabaseClock((await freshDatabase()).db(), log);
clock.start();
cleanUp(() => clock.stop());
const redis = await redisServer();
const statistics = new Redis(redis.url);
cleanUp(() => statistics.disconnect());

function linkOf(nodeId: string, url: string): DispatchLink {
  const channel = new RedisChannel({ url, nodeId, log });
  const link = new DispatchLink({
    channel,
    nodeId,
    log,
    dispatches: { find: async () => null },
    clock,
    hostedNode: () => null,
  });
  cleanUp(() => link.close());
  cleanUp(() => channel.close());
  return link;
}

/** Messages that were published on this server so far. */
async function publications(): Promise<number> {
  return Number(/cmdstat_publish:calls=(\d+)/.exec(await statistics.info('commandstats'))?.[1] ?? 0);
}

const OPEN = {
  tenant_id: 'ten_1',
  message_id: 'msg_1',
  dispatch_id: 'dsp_1',
  session_id: 'ses_1',
  instance_id: 'a',
  deployment_mode: 'connected',
  epoch: 1,
  mesh_id: 'mesh_holder',
  sent_at: new Date(),
  deadline_at: new Date(),
  payload: {},
} as unknown as OpenDispatch & { mesh_id: string };

test('a dispatch does not count as refused while a later copy may reach a node that listens again', async () => {
  const way = await TcpProxy.to(redis.url);
  const caller = linkOf('mesh_caller', way.urlOf(redis.url));
  await until(() => caller.isReachable, { what: 'the way to Redis' });
  // Redis's word that nobody listened comes after further copies have gone out.
  way.latencyMs = 800;
  const forwarded = caller.forward(OPEN, 0);
  await until(async () => (await statistics.info('commandstats')).includes('cmdstat_publish'), {
    what: 'the first copy',
  });
  const taken: string[] = [];
  linkOf('mesh_holder', redis.url).serve({
    take: async ({ dispatch_id }) => {
      taken.push(dispatch_id);
      return { state: 'completed', message: null };
    },
    refusalKnown: async () => undefined,
  });
  expect(await forwarded).toEqual({ state: 'completed', message: null });
  expect(taken).toEqual([OPEN.dispatch_id]);
});

test('the time on the way to the node counts for the lease', async () => {
  const way = await TcpProxy.to(redis.url);
  const holder = linkOf('mesh_far', way.urlOf(redis.url));
  const caller = linkOf('mesh_near', redis.url);
  await until(() => caller.isReachable, { what: 'the way to Redis' });
  await until(async () => (await statistics.pubsub('CHANNELS', '*mesh_far')).length === 1, {
    what: 'the subscription',
  });
  const elapsedOf = new Promise<number>((resolve) => {
    holder.serve({
      take: (_open, elapsedMs) => {
        resolve(elapsedMs);
        return null;
      },
      refusalKnown: async () => undefined,
    });
  });
  way.latencyMs = 900;
  const forwarded = caller.forward({ ...OPEN, dispatch_id: 'dsp_2', mesh_id: 'mesh_far' }, 500);
  expect(await elapsedOf).toBeGreaterThanOrEqual(1_400);
  way.latencyMs = 0;
  expect(await forwarded).toBe('refused');
});

test('a refusal that takes time, and is lost, is heard from the answer to a later copy', async () => {
  const isLost = (chunk: Buffer) => chunk.includes('"kind":"dispatch_refused"') && ++refusals === 1;
  let refusals = 0;
  const way = await TcpProxy.to(redis.url, { arrives: (chunk) => !isLost(chunk) });
  const caller = linkOf('mesh_hears_late', way.urlOf(redis.url));
  const holder = linkOf('mesh_refuses', redis.url);
  let known: (() => void) | undefined;
  holder.serve({
    take: () => null,
    // Copies come meanwhile.
    refusalKnown: () => new Promise((resolve) => (known = resolve)),
  });
  await until(() => caller.isReachable, { what: 'the way to Redis' });
  await until(async () => (await statistics.pubsub('CHANNELS', '*mesh_refuses')).length === 1, {
    what: 'the subscription',
  });
  const copiesBefore = await publications();
  const forwarded = caller.forward({ ...OPEN, dispatch_id: 'dsp_3', mesh_id: 'mesh_refuses' }, 0);
  await until(() => known);
  await until(async () => (await publications()) >= copiesBefore + 2, { what: 'a second copy' });
  known?.();
  expect(await forwarded).toBe('refused');
  expect(refusals).toBe(2);
});
