import type { TokenIssuer } from '../../auth/tokens.js';
import type { Outbound } from '../../http/outbound.js';
import { AgentCredentials } from '../../mesh/hosted/agent-credentials.js';
import { createHostedTools } from '../../mesh/hosted/tool-calls.js';
import type { MessageCore } from '../../messages/core.js';
import { createLogger } from '../../runtime/logger.js';
import type { SpanRecorder } from '../../telemetry/traces/span-recorder.js';
import { DecisionWatch } from '../../tools/approvals/decision-watch.js';
import { ToolApprovals } from '../../tools/approvals/tool-approvals.js';
import type { PlatformToolDeps } from '../../tools/platform-tools.js';
import { ToolCalls } from '../../tools/tool-calls.js';
import { createLocalLink, type NodeLink } from '../../tools/tool-link.js';
import { ToolUsage } from '../../usage/tool-usage.js';
import { cleanUp } from './clean-up.js';
import { TEST_SECRETS } from './core.js';

const log = createLogger({ level: process.env.MESH_TEST_LOG ?? 'silent' });

const noKnowledge = () => Promise.reject(new Error('this test has no knowledge bases'));
const NO_KNOWLEDGE = { query: noKnowledge, ingest: noKnowledge };

/** Takes spans of tests that are not about traces. */
export const NO_SPANS: SpanRecorder = { record: () => undefined };

interface ToolCallsDeps {
  core: MessageCore;
  outbound: Outbound;
  tokens: TokenIssuer;
  /** Needed by callers of its tools alone. */
  knowledge?: PlatformToolDeps['knowledge'];
  link?: NodeLink;
  meshId?: string;
}

/** The tool calls of one process, put together as the platform does. */
export function toolCalls({ core, outbound, tokens, meshId = 'alone', ...deps }: ToolCallsDeps): ToolCalls {
  const { knowledge = NO_KNOWLEDGE, link = createLocalLink(meshId) } = deps;
  const { db, bus, workflowStarter, policies } = core;
  const credentials = new AgentCredentials({ outbound, secrets: TEST_SECRETS });
  const watch = new DecisionWatch({ db, bus, log, meshId });
  watch.start();
  cleanUp(() => watch.stop());
  return new ToolCalls({
    db,
    log,
    link,
    knowledge,
    hosted: createHostedTools({ db, log, meshId, outbound, tokens, credentials }),
    policies,
    usage: new ToolUsage(db, log),
    spans: NO_SPANS,
    approvals: new ToolApprovals({
      db,
      log,
      bus,
      local: core.local,
      meshId,
      watch,
      workflowStarter,
      fill: (agent) => core.nodes.fill(agent),
    }),
  });
}
