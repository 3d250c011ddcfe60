import type { TokenIssuer } from '../../auth/tokens.js';
import type { Db } from '../../db/pool.js';
import type { Outbound } from '../../http/outbound.js';
import { createHostedTools } from '../../mesh/hosted/tool-calls.js';
import { createLogger } from '../../runtime/logger.js';
import { ToolCalls } from '../../tools/tool-calls.js';
import { createLocalLink, type NodeLink } from '../../tools/tool-link.js';

const log = createLogger({ level: process.env.MESH_TEST_LOG ?? 'silent' });

/** The tool calls of one process, put together as the platform does. */
export function toolCalls(deps: { db: Db; outbound: Outbound; tokens: TokenIssuer; link?: NodeLink }): ToolCalls {
  const { db, outbound, tokens, link = createLocalLink('alone') } = deps;
  return new ToolCalls({
    db,
    log,
    link,
    hosted: createHostedTools({ db, log, nodeId: 'alone', outbound, tokens }),
  });
}
