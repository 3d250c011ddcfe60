import type { AgentRow } from '../agents/agent-row.js';
import { createHostedTools } from '../mesh/hosted/tool-calls.js';
import { createRedisLink } from '../mesh/nodes/tool-link-redis.js';
import { fleetGetAgents } from '../tools/platform-tools.js';
import { createToolCallService, type ToolCallService } from '../tools/tool-call-service.js';
import { ToolCalls } from '../tools/tool-calls.js';
import { type CloseDeregistered, createLocalLink } from '../tools/tool-link.js';
import type { Services } from './services.js';

/** The tool calls of this process, and its way to other nodes. */
export interface RunningTools {
  calls: ToolCalls;
  /** `POST /tools/call`. */
  door: ToolCallService;
  /** Has the nodes close the sockets of agents that were deregistered. */
  closeSockets(rows: AgentRow[]): void;
  /** What this node is asked so goes to `close` from now on. */
  serveDeregistered(close: CloseDeregistered): void;
  stop(): Promise<void>;
}

/** @param nodeId of the mesh role where it runs here; else any, for the way back */
export function startTools(services: Services, nodeId: string): RunningTools {
  const { config, db, log, outbound, tokens, dispatches, bus } = services;
  const link = config.REDIS_URL ? createRedisLink({ url: config.REDIS_URL, nodeId, log }) : createLocalLink(nodeId);
  const calls = new ToolCalls({
    db,
    log,
    link,
    hosted: createHostedTools({ db, log, nodeId, outbound, tokens }),
    platform: { 'fleet.get_agents': fleetGetAgents(db) },
  });
  const door = createToolCallService({ db, log, calls, link, nodeId, dispatches, bus });
  return {
    calls,
    door,
    closeSockets: (rows) => {
      for (const { mesh_id, tenant_id, instance_id, connection_epoch } of rows)
        if (mesh_id !== null) link.deregistered(mesh_id, { tenant_id, instance_id, epoch: connection_epoch });
    },
    serveDeregistered: (close) => link.serveDeregistered(close),
    stop: () => link.close(),
  };
}
