import { RedisChannel } from '../mesh/nodes/redis-channel.js';
import type { DroppedMessage } from '../mesh/nodes/signed-message.js';
import { RedisLink } from '../mesh/nodes/tool-link-redis.js';
import type { NodeNotice } from '../messages/dispatch/nodes.js';
import { createLocalLink, type NodeLink } from '../tools/tool-link.js';
import type { Services } from './services.js';

/** How this process reaches the others. */
export interface NodeLinks {
  tools: NodeLink;
  /** Words to other nodes that may be lost; null without Redis. */
  notices: NodeNotices | null;
  stop(): Promise<void>;
}

export interface NodeNotices {
  /** Whether a word would go out now. */
  isReady(): boolean;
  tell(meshId: string, notice: NodeNotice): void;
  /** @param hear gets the words of other nodes to this one */
  listen(hear: (notice: NodeNotice) => void): void;
}

/**
 * Links this process to the others, over Redis where it is configured.
 * @param meshId the mesh id of this process, or any unique id
 * @param dropped counts messages that no other node has signed
 */
export function linkNodes(
  { config, log, secrets }: Services,
  meshId: string,
  dropped: Record<DroppedMessage, number>,
): NodeLinks {
  if (!config.REDIS_URL) {
    const tools = createLocalLink(meshId);
    return { tools, notices: null, stop: () => tools.close() };
  }
  const channel = new RedisChannel({ url: config.REDIS_URL, meshId, log, secrets, dropped });
  const tools = new RedisLink({ channel, meshId, log });
  const notices: NodeNotices = {
    isReady: () => channel.isReady,
    tell: (meshId, notice) => void channel.publish(meshId, notice),
    listen: (hear) =>
      channel.listen((message) => {
        if (message.kind === 'fill' || message.kind === 'canceled') hear(message);
      }),
  };
  return {
    tools,
    notices,
    stop: async () => {
      await tools.close();
      await channel.close();
    },
  };
}
