import type { TokenIssuer } from '../../auth/tokens.js';
import type { Db } from '../../db/pool.js';
import type { Outbound } from '../../http/outbound.js';
import { createHostedTools } from '../../mesh/hosted/tool-calls.js';
import { createLogger } from '../../runtime/logger.js';
import type { PlatformToolDeps } from '../../tools/platform-tools.js';
import { ToolCalls } from '../../tools/tool-calls.js';
import { createLocalLink, type NodeLink } from '../../tools/tool-link.js';

const log = createLogger({ level: process.env.MESH_TEST_LOG ?? 'silent' });

const noKnowledge = () => Promise.reject(new Error('this test has no knowledge bases'));
const NO_KNOWLEDGE = { query: noKnowledge, ingest: noKnowledge };

/** The tool calls of one process, put together as the platform does. */
export function toolCalls(deps: {
  db: Db;
  outbound: Outbound;
  tokens: TokenIssuer;
  /** Needed by callers of its tools alone. */
  knowledge?: PlatformToolDeps['knowledge'];
  link?: NodeLink;
}): ToolCalls {
  const { db, outbound, tokens, knowledge = NO_KNOWLEDGE, link = createLocalLink('alone') } = deps;
  return new ToolCalls({
    db,
    log,
    link,
    knowledge,
    hosted: createHostedTools({ db, log, nodeId: 'alone', outbound, tokens }),
  });
}
