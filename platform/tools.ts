import type { AgentRow } from '../agents/agent-row.js';
import { createHostedTools } from '../mesh/hosted/tool-calls.js';
import { DecisionWatch } from '../tools/approvals/decision-watch.js';
import { ToolApprovals } from '../tools/approvals/tool-approvals.js';
import { createPlanTool } from '../tools/plan-tool.js';
import { ToolCallService } from '../tools/tool-call-service.js';
import { ToolCalls } from '../tools/tool-calls.js';
import type { NodeHandlers, NodeLink } from '../tools/tool-link.js';
import type { Services } from './services.js';

export type RunningTools = ReturnType<typeof startTools>;

/**
 * The tool calls of this process.
 * @param link to other nodes
 * @param meshId the mesh id of this process, or any unique id without the mesh role: answers return to it
 */
export function startTools(services: Services, link: NodeLink, meshId: string) {
  const { db, log, outbound, tokens, credentials, dispatches, bus, core, knowledge } = services;
  const { workflowStarter } = core;
  const watch = new DecisionWatch({ db, log, bus, meshId });
  watch.start();
  const calls = new ToolCalls({
    db,
    log,
    link,
    knowledge,
    hosted: createHostedTools({ db, log, meshId, outbound, tokens, credentials }),
    policies: core.policies,
    usage: services.toolUsage,
    spans: services.spans,
    planTool: createPlanTool(services.plans),
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
  return {
    calls,
    /** Ends the look for decisions. */
    stop: () => watch.stop(),
    /** Answers `POST /tools/call`. */
    service: new ToolCallService({ db, log, calls, link, meshId, dispatches, bus }),
    /** Makes the nodes of deregistered agents close their sockets. */
    closeSockets: (rows: AgentRow[]) => {
      for (const { mesh_id, tenant_id, instance_id, connection_epoch } of rows)
        if (mesh_id !== null) link.deregistered(mesh_id, { tenant_id, instance_id, epoch: connection_epoch });
    },
    /** Sets what closes the socket of a deregistered agent on this node. */
    serveDeregistered: (close: NodeHandlers['deregistered']) => link.serve({ deregistered: close }),
  };
}
