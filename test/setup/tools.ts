import type { Db } from '../../db/pool.js';
import { ToolCalls } from '../../mesh/tool-calls.js';
import { createHostedTools } from '../../mesh/tool-hosted.js';
import { createLocalLink, type NodeLink } from '../../mesh/tool-link.js';
import { fleetGetAgents, PlatformTools } from '../../mesh/tool-platform.js';
import { createLogger } from '../../runtime/logger.js';
import type { Outbound } from '../../runtime/outbound.js';
import type { TokenIssuer } from '../../runtime/tokens.js';

const log = createLogger({ level: process.env.MESH_TEST_LOG ?? 'silent' });

/** The tool calls of one process, put together as the platform does. */
export function toolCalls(around: { db: Db; outbound: Outbound; tokens: TokenIssuer; link?: NodeLink }): ToolCalls {
  const { db, outbound, tokens, link = createLocalLink('alone') } = around;
  return new ToolCalls({
    db,
    log,
    link,
    hosted: createHostedTools({ db, log, nodeId: 'alone', outbound, tokens }),
    platform: new PlatformTools().register('fleet.get_agents', fleetGetAgents(db)),
  });
}
