import { setMaxListeners } from 'node:events';
import type { FastifyInstance } from 'fastify';
import { buildApi } from '../api/app.js';
import { connectRateLimits } from '../api/rate-limit.js';
import { sessionDeps } from '../messages/cancel.js';
import { FastPath } from '../messages/dispatch/fast-path.js';
import { createGateway } from '../messages/gateway.js';
import { Sweeper } from '../messages/supervise/sweeper.js';
import type { Config } from '../runtime/config.js';
import { newId } from '../runtime/ids.js';
import type { Logger } from '../runtime/logger.js';
import { SessionStarter } from '../sessions/session-starter.js';
import { createHealth } from './health.js';
import type { Infrastructure } from './infrastructure.js';
import { type RunningMesh, startMesh } from './mesh-role.js';
import type { RunOptions } from './roles.js';
import { createServices, type Services } from './services.js';
import { type RunningTools, startTools } from './tools.js';
import { connectWorkers, runFleetWorker, type WorkerDeps } from './workers.js';

/** The platform, answering. */
export interface Platform {
  services: Services;
  baseUrl: string | null;
  meshUrl: string | null;
  /** Drains for up to `graceMs`, then stops every part. */
  stop(graceMs: number): Promise<void>;
}

/** Where the platform says that it is; known once its servers listen. */
class Addresses {
  base = '';
  mesh = '';
}

function hostInUrl(host: string): string {
  const shown = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return shown.includes(':') ? `[${shown}]` : shown;
}

function trimmed(url: string): string {
  return url.replace(/\/+$/, '');
}

/** What a process with these roles has of the fast path: nothing before its mesh is up, or where it is turned off. */
class FastPathDoor {
  open: FastPath | null = null;
}

async function buildHttp(
  services: Services,
  at: Addresses,
  draining: AbortSignal,
  door: FastPathDoor,
  tools: RunningTools,
  parts: Parts,
): Promise<FastifyInstance> {
  const { config, db, log, bus, core, temporal, version } = services;
  const redis = config.REDIS_URL ? connectRateLimits(config.REDIS_URL) : null;
  parts.add(async () => redis?.disconnect());
  return buildApi({
    config,
    db,
    log,
    authenticator: services.authenticator,
    tokens: services.tokens,
    secrets: services.secrets,
    gateway: createGateway(core, () => door.open),
    pushConfigs: services.pushConfigs,
    sessions: services.sessions,
    tools: tools.door,
    agentsDeregistered: (rows) => tools.closeSockets(rows),
    agentJoined: (tenantId, agent) => services.dispatches.agentJoined(tenantId, agent),
    outbound: services.outbound,
    redis,
    health: createHealth({ db, temporal, version, redis: config.REDIS_URL ? () => bus.isReachable() : null }),
    version,
    baseUrl: () => at.base,
    meshUrl: () => at.mesh,
    draining,
  });
}

/** Work that is stopped in the reverse order of its start. */
class Parts {
  readonly #stops: ((graceMs: number) => Promise<void>)[] = [];

  add(stop: (graceMs: number) => Promise<void>): void {
    this.#stops.push(stop);
  }

  async stop(graceMs: number, log: Logger): Promise<void> {
    for (const stop of this.#stops.splice(0).reverse()) {
      await stop(graceMs).catch((error: Error) => log.error({ err: error.message }, 'a part did not stop cleanly'));
    }
  }
}

async function startWorkerRole(services: Services, workerDeps: WorkerDeps, parts: Parts): Promise<void> {
  const { core, dispatches, db, outbound, secrets, sessions, log, temporal, pushRelay } = services;
  const watch = { db, outbound, sessions, log };
  const delivery = { db, outbound, secrets, log };
  const worker = await runFleetWorker(workerDeps, { core, dispatches, watch, delivery, temporal });
  parts.add(() => worker.stop());
  await temporal.ensureAgentWatch();
  const sweeper = new Sweeper(core, temporal);
  sweeper.start();
  parts.add(() => sweeper.stop());
  const starter = new SessionStarter(sessionDeps(core), temporal);
  starter.start();
  parts.add(() => starter.stop());
  pushRelay.start();
  parts.add(() => pushRelay.stop());
}

async function startRoles(
  services: Services,
  infrastructure: Infrastructure,
  run: RunOptions,
  at: Addresses,
  parts: Parts,
): Promise<void> {
  const { config, log } = services;
  const connection = await connectWorkers(infrastructure.temporal);
  parts.add(() => connection.close());
  const workerDeps: WorkerDeps = { connection, namespace: config.TEMPORAL_NAMESPACE, log };
  if (run.roles.has('worker')) await startWorkerRole(services, workerDeps, parts);
  const draining = new AbortController();
  // Every stream and every waiting send listens to it.
  setMaxListeners(0, draining.signal);
  const door = new FastPathDoor();
  const meshId = newId('mesh');
  const tools = run.roles.has('api') || run.roles.has('mesh') ? startTools(services, meshId) : undefined;
  parts.add(() => tools?.stop() ?? Promise.resolve());
  const http = tools && (await buildHttp(services, at, draining.signal, door, tools, parts));
  let mesh: RunningMesh | undefined;
  if (tools && run.roles.has('mesh')) {
    await http?.ready();
    mesh = await startMesh({
      services,
      infrastructure,
      workerDeps,
      meshId,
      tools,
      handler: (request, response) => http?.routing(request, response),
    });
    at.mesh = trimmed(config.FLEET_MESH_URL ?? `https://${hostInUrl(config.FLEET_HOST)}:${mesh.port}`);
    parts.add((graceMs) => mesh?.stop(graceMs) ?? Promise.resolve());
    if (config.FLEET_FAST_PATH === 'on') {
      const { core, dispatches, temporal } = services;
      const fastPath = new FastPath({
        core,
        dispatches,
        mesh: mesh.local,
        supervise: (ref) => temporal.startMessage(ref),
      });
      door.open = fastPath;
      parts.add(() => fastPath.stop());
    }
  }
  if (config.FLEET_MESH_URL) at.mesh = trimmed(config.FLEET_MESH_URL);
  if (http && run.roles.has('api')) {
    await http.listen({ host: config.FLEET_HOST, port: config.FLEET_API_PORT });
    const address = http.server.address();
    const port = typeof address === 'object' && address ? address.port : config.FLEET_API_PORT;
    at.base = trimmed(config.FLEET_BASE_URL ?? `http://${hostInUrl(config.FLEET_HOST)}:${port}`);
  } else if (config.FLEET_BASE_URL) {
    at.base = trimmed(config.FLEET_BASE_URL);
  }
  if (http) {
    parts.add(async (graceMs) => {
      draining.abort();
      // A reader that stalls would hold the close for ever.
      const cut = setTimeout(() => http.server.closeAllConnections(), Math.max(1_000, graceMs));
      const idle = setInterval(() => http.server.closeIdleConnections(), 100);
      await http.close();
      clearTimeout(cut);
      clearInterval(idle);
    });
  }
}

/** Agents are told where the mesh is, and it cannot be seen from a process that does not run it. */
function checkMeshUrl(config: Config, run: RunOptions): void {
  if (!run.roles.has('api') || run.roles.has('mesh') || config.FLEET_MESH_URL) return;
  throw new Error('The api role without the mesh role needs FLEET_MESH_URL: agents are told to connect there.');
}

/** Starts the roles that are asked for on what is there. What was started is stopped again when a later part fails. */
export async function startPlatform(options: {
  config: Config;
  run: RunOptions;
  infrastructure: Infrastructure;
  log: Logger;
}): Promise<Platform> {
  checkMeshUrl(options.config, options.run);
  const at = new Addresses();
  const parts = new Parts();
  const services = await createServices({ ...options, baseUrl: () => at.base });
  parts.add(() => services.close());
  try {
    await startRoles(services, options.infrastructure, options.run, at, parts);
  } catch (error) {
    await parts.stop(0, options.log);
    throw error;
  }
  return {
    services,
    baseUrl: at.base || null,
    meshUrl: at.mesh || null,
    stop: (graceMs) => parts.stop(graceMs, options.log),
  };
}
