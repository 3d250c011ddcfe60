import { DatabaseClock } from '../db/database-clock.js';
import { DispatchLink } from '../mesh/nodes/dispatch-link.js';
import { LivingNodes } from '../mesh/nodes/living-nodes.js';
import { RedisChannel } from '../mesh/nodes/redis-channel.js';
import { createRedisLink } from '../mesh/nodes/tool-link-redis.js';
import { createLocalLink, type NodeLink } from '../tools/tool-link.js';
import type { Services } from './services.js';

/** How this process reaches the others. */
export interface NodeLinks {
  tools: NodeLink;
  /** Null without Redis. */
  dispatches: DispatchLink | null;
  stop(): Promise<void>;
}

/** Links this process to the others, over Redis where it is configured. @param nodeId the mesh id of this process, or any unique id */
export function linkNodes({ config, db, log, dispatches }: Services, nodeId: string): NodeLinks {
  if (!config.REDIS_URL) {
    const tools = createLocalLink(nodeId);
    return { tools, dispatches: null, stop: () => tools.close() };
  }
  const channel = new RedisChannel({ url: config.REDIS_URL, nodeId, log });
  const tools = createRedisLink({ channel, nodeId, log });
  const nodes = new LivingNodes(db, log);
  const clock = new DatabaseClock(db, log);
  clock.start();
  const link = new DispatchLink({ channel, nodeId, dispatches, clock, log, hostedNode: () => nodes.any() });
  return {
    tools,
    dispatches: link,
    stop: async () => {
      await Promise.all([nodes.stop(), clock.stop()]);
      link.close();
      await tools.close();
      await channel.close();
    },
  };
}
