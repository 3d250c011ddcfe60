import type { AgentRow } from '../agents/agent-row.js';
import { createHostedTools } from '../mesh/hosted/tool-calls.js';
import { createRedisLink } from '../mesh/nodes/tool-link-redis.js';
import { ToolCallService } from '../tools/tool-call-service.js';
import { ToolCalls } from '../tools/tool-calls.js';
import { createLocalLink, type NodeHandlers } from '../tools/tool-link.js';
import type { Services } from './services.js';

/** The tool calls of this process, and its link to other nodes. */
export interface RunningTools {
  calls: ToolCalls;
  /** Answers `POST /tools/call`. */
  service: ToolCallService;
  /** Makes the nodes of deregistered agents close their sockets. */
  closeSockets(rows: AgentRow[]): void;
  /** Sets what closes the socket of a deregistered agent on this node. */
  serveDeregistered(close: NodeHandlers['deregistered']): void;
  stop(): Promise<void>;
}

/** @param nodeId the mesh id of this process, or any unique id without the mesh role: answers return to it */
export function startTools(services: Services, nodeId: string): RunningTools {
  const { config, db, log, outbound, tokens, dispatches, bus } = services;
  const link = config.REDIS_URL ? createRedisLink({ url: config.REDIS_URL, nodeId, log }) : createLocalLink(nodeId);
  const calls = new ToolCalls({
    db,
    log,
    link,
    hosted: createHostedTools({ db, log, nodeId, outbound, tokens }),
  });
  const service = new ToolCallService({ db, log, calls, link, nodeId, dispatches, bus });
  return {
    calls,
    service,
    closeSockets: (rows) => {
      for (const { mesh_id, tenant_id, instance_id, connection_epoch } of rows)
        if (mesh_id !== null) link.deregistered(mesh_id, { tenant_id, instance_id, epoch: connection_epoch });
    },
    serveDeregistered: (close) => link.serve({ deregistered: close }),
    stop: () => link.close(),
  };
}
