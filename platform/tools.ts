import { ToolCalls } from '../mesh/tool-calls.js';
import { createToolDoor, type ToolDoor } from '../mesh/tool-door.js';
import { createHostedTools } from '../mesh/tool-hosted.js';
import { createLocalLink } from '../mesh/tool-link.js';
import { createRedisLink } from '../mesh/tool-link-redis.js';
import { fleetGetAgents, PlatformTools } from '../mesh/tool-platform.js';
import type { Foundation } from './foundation.js';

/** The tool calls of this process. */
export interface RunningTools {
  calls: ToolCalls;
  /** `POST /tools/call`. */
  door: ToolDoor;
  stop(): Promise<void>;
}

/** @param nodeId of the mesh role where it runs here; else any, for the way back */
export function startTools(foundation: Foundation, nodeId: string): RunningTools {
  const { config, db, log, outbound, tokens, dispatches, bus } = foundation;
  const link = config.REDIS_URL ? createRedisLink({ url: config.REDIS_URL, nodeId, log }) : createLocalLink(nodeId);
  const calls = new ToolCalls({
    db,
    log,
    link,
    hosted: createHostedTools({ db, log, nodeId, outbound, tokens }),
    platform: new PlatformTools().register('fleet.get_agents', fleetGetAgents(db)),
  });
  const door = createToolDoor({ db, log, calls, link, nodeId, dispatches, bus });
  return { calls, door, stop: () => link.close() };
}
