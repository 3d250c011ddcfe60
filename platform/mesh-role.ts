import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHostedDispatcher } from '../mesh/hosted/hosted.js';
import { createLocalMesh } from '../mesh/local.js';
import { Reservations } from '../mesh/reservations.js';
import { createMeshServer } from '../mesh/server/server.js';
import type { LocalMesh } from '../messages/dispatch/local-mesh.js';
import type { Infrastructure } from './infrastructure.js';
import type { Services } from './services.js';
import type { RunningTools } from './tools.js';
import { type RunningWorker, runNodeWorkers, type WorkerDeps } from './workers.js';

/** The mesh role, listening. */
export interface RunningMesh {
  port: number;
  meshId: string;
  /** This node as the fast path sees it. */
  local: LocalMesh;
  /** Lets what is in flight finish for `graceMs`, tells the agents to go, then stops. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Starts the mesh role: WebSocket server, dispatchers and this node's Temporal workers.
 * @param options.meshId new at every boot
 * @param options.handler answers the API paths that the mesh address also serves
 */
export async function startMesh(options: {
  services: Services;
  infrastructure: Infrastructure;
  workerDeps: WorkerDeps;
  meshId: string;
  tools: RunningTools;
  handler: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
}): Promise<RunningMesh> {
  const { services, infrastructure, workerDeps, meshId, tools, handler } = options;
  const { config, db, log, bus, dispatches, authenticator, outbound, tokens } = services;
  if (!infrastructure.tls) throw new Error('The mesh role needs a certificate.');
  const reservations = new Reservations();
  const server = createMeshServer({
    config,
    db,
    log,
    bus,
    dispatches,
    authenticator,
    tls: infrastructure.tls,
    meshId,
    tools: tools.calls,
    handler,
    reservations,
  });
  const hosted = createHostedDispatcher({ dispatches, bus, outbound, tokens, db, log, meshId, reservations });
  tools.serveDeregistered((agent) => server.closeDeregistered(agent));
  const { port } = await server.listen();
  const workers: RunningWorker = await runNodeWorkers(workerDeps, meshId, { connected: server.dispatcher, hosted });
  const local = createLocalMesh({
    meshId,
    reservations,
    connected: server.dispatcher,
    hosted,
    isDraining: () => server.isDraining,
  });
  return {
    port,
    meshId,
    local,
    stop: async (graceMs) => {
      // No new dispatches from here on; those in flight end within the grace, and the workers with them.
      const idle = workers.stop();
      await Promise.all([server.drain(graceMs), hosted.close(graceMs)]);
      // Ends what is left, so that the workers have nothing to wait for.
      await server.close();
      await idle;
    },
  };
}
