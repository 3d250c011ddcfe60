import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AgentRef } from '../../agents/agent-row.js';
import { HostedTransport } from '../../mesh/hosted/hosted-transport.js';
import { MeshServer } from '../../mesh/server/server.js';
import { DispatchRunner } from '../../messages/runner/runner.js';
import { createResultProposals } from '../../plans/result-proposals.js';
import type { Infrastructure } from '../infrastructure.js';
import type { Services } from '../services.js';
import type { RunningTools } from '../tools.js';

/**
 * Starts the mesh role: WebSocket server (listening) and dispatch runner.
 * @param options.meshId new at every boot
 * @param options.handler serves the API paths that the mesh address answers too
 * @param options.nodeUrl this node's own address when it listens on that port; undefined when only a load balancer's is known
 */
export async function startMesh(options: {
  services: Services;
  infrastructure: Infrastructure;
  meshId: string;
  tools: RunningTools;
  handler: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  nodeUrl: (port: number) => string | undefined;
}) {
  const { services, infrastructure, meshId, tools, handler, nodeUrl } = options;
  const { config, core, db, log, bus, dispatches, authenticator, outbound, tokens, credentials, spans } = services;
  const { tls } = infrastructure;
  if (!tls) throw new Error('The mesh role needs a certificate.');
  const proposePlan = createResultProposals(db, services.plans);
  const { FLEET_CLOCKS: clocks } = config;
  const { reconcileMs } = clocks;
  const runner = new DispatchRunner({
    dispatches,
    bus,
    guards: core.policies,
    db,
    log,
    meshId,
    proposePlan,
    reconcileMs,
  });
  const fill = (agent: AgentRef) => core.nodes.fill(agent, meshId);
  const shared = { fill, db, log, bus: runner.output, changes: bus, dispatches, spans };
  let ownUrl: string | undefined;
  const server = new MeshServer({
    ...{ ...shared, config, clocks, runner, policies: core.policies, authenticator, tls, tools: tools.calls, handler },
    nodeUrl: () => ownUrl,
  });
  const hosted = new HostedTransport({ ...shared, outbound, tokens, credentials, closing: runner.closing });
  tools.serveDeregistered((agent) => server.closeDeregistered(agent));
  const { port } = await server.listen();
  ownUrl = nodeUrl(port);
  runner.start({ connected: server.transport, hosted });
  return {
    port,
    runner,
    stats: () => server.stats(),
    certificateEndsAtMs: () => server.certificateEndsAtMs,
    /** Gives running dispatches up to `graceMs` to finish, asks the agents to disconnect, then stops. */
    stop: async (graceMs: number): Promise<void> => {
      await Promise.all([server.drain(graceMs), runner.drain(graceMs)]);
      await server.close();
    },
  };
}
