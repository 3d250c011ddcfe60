import type { TokenIssuer } from '../../auth/tokens.js';
import type { Outbound } from '../../http/outbound.js';
import { createHostedTools } from '../../mesh/hosted/tool-calls.js';
import type { MessageCore } from '../../messages/core.js';
import { createLogger } from '../../runtime/logger.js';
import { DecisionWatch } from '../../tools/decision-watch.js';
import { ToolApprovals } from '../../tools/tool-approvals.js';
import { ToolCalls } from '../../tools/tool-calls.js';
import { createLocalLink, type NodeLink } from '../../tools/tool-link.js';

const log = createLogger({ level: process.env.MESH_TEST_LOG ?? 'silent' });

interface ToolCallsDeps {
  core: MessageCore;
  outbound: Outbound;
  tokens: TokenIssuer;
  link?: NodeLink;
  nodeId?: string;
}

/** The tool calls of one process, put together as the platform does. */
export function toolCalls(deps: ToolCallsDeps): ToolCalls {
  const { core, outbound, tokens, nodeId = 'alone', link = createLocalLink(nodeId) } = deps;
  const { db, bus, workflowStarter, policies } = core;
  const watch = new DecisionWatch({ db, bus, log, nodeId });
  return new ToolCalls({
    db,
    log,
    link,
    hosted: createHostedTools({ db, log, nodeId, outbound, tokens }),
    policies,
    approvals: new ToolApprovals({ db, log, bus, nodeId, watch, workflowStarter }),
  });
}
