import { setMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { ApiShutdown } from '../api/api-shutdown.js';
import { buildApi } from '../api/app.js';
import type { ApiDeps } from '../api/deps.js';
import { connectRateLimits } from '../api/rate-limit.js';
import { endEarlierSignIns } from '../auth/people.js';
import { DeadNodes } from '../mesh/nodes/dead-nodes.js';
import { Dispatcher } from '../messages/dispatch/dispatcher.js';
import { createNodes } from '../messages/dispatch/nodes.js';
import type { DispatchRunner } from '../messages/runner/runner.js';
import type { Config } from '../runtime/config.js';
import { listenError } from '../runtime/errors.js';
import { newId } from '../runtime/ids.js';
import type { Logger } from '../runtime/logger.js';
import { allOrFirstFailure } from '../runtime/promises/all-or-first-failure.js';
import type { Infrastructure } from './infrastructure.js';
import type { MetricSources } from './metrics/platform-metrics.js';
import { type ProcessFacts, startMetrics } from './metrics/start-metrics.js';
import { linkNodes, type NodeLinks } from './node-links.js';
import { startMesh } from './roles/mesh-role.js';
import type { RunOptions } from './roles/roles.js';
import type { WorkerDeps } from './roles/running-worker.js';
import { startWorkerRole } from './roles/worker-role.js';
import { runKnowledgeWorker } from './roles/workers.js';
import { createServices, type Services } from './services.js';
import { StopList } from './stop-list.js';
import { type RunningTools, startTools } from './tools.js';

/** With `--roles`: balancers that ask every second or two have noticed by then. */
const STOP_DELAY_MS = 5_000;

/** The running platform. */
export interface Platform {
  services: Services;
  baseUrl: string | null;
  meshUrl: string | null;
  /** Null when its port is taken. */
  metricsUrl: string | null;
  /** Says for `FLEET_STOP_DELAY_MS` that it is not ready, drains for up to `graceMs`, then stops every component. */
  stop(graceMs: number): Promise<void>;
}

/** What becomes known while the platform starts. The servers read it at each use. */
interface Started {
  /** Empty until the API listens, unless `FLEET_BASE_URL` is set. */
  baseUrl: string;
  /** Empty until the mesh listens, unless `FLEET_MESH_URL` is set. */
  meshUrl: string;
}

function hostInUrl(host: string): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return reachable.includes(':') ? `[${reachable}]` : reachable;
}

function withoutTrailingSlash(url = ''): string {
  return url.replace(/\/+$/, '');
}

/** The address of this process's own mesh node. A configured mesh address may be a load balancer's, so then it has to be configured too. */
function ownMeshUrl({ FLEET_NODE_URL, FLEET_MESH_URL, FLEET_HOST }: Config, port: number): string | undefined {
  if (FLEET_NODE_URL) return withoutTrailingSlash(FLEET_NODE_URL);
  return FLEET_MESH_URL ? undefined : `https://${hostInUrl(FLEET_HOST)}:${port}`;
}

function buildHttp(
  services: Services,
  started: Started,
  ends: Pick<ApiDeps, 'stopping' | 'draining'>,
  tools: RunningTools,
  stops: StopList,
  { health, http: counts }: MetricSources,
): FastifyInstance {
  const { config, db, log, version } = services;
  const redis = config.REDIS_URL ? connectRateLimits(config.REDIS_URL) : null;
  stops.add(async () => redis?.disconnect());
  return buildApi({
    config,
    clocks: config.FLEET_CLOCKS,
    db,
    log,
    authenticator: services.authenticator,
    tokens: services.tokens,
    secrets: services.secrets,
    messages: services.messages,
    pushConfigs: services.pushConfigs,
    policies: services.core.policies,
    policyCatalog: services.policyCatalog,
    guardCatalog: services.guardCatalog,
    alertRules: services.alertRules,
    channelClients: services.channelClients,
    deliveriesExpected: () => services.deliveryStarter.expect(),
    sessions: services.sessions,
    quotas: services.quotas,
    catchUpUsage: services.catchUpUsage,
    plans: services.plans,
    tools: tools.service,
    knowledge: services.knowledge,
    eventFeed: services.eventFeed,
    agentsDeregistered: (rows) => tools.closeSockets(rows),
    fill: (agent) => services.core.nodes.fill(agent),
    outbound: services.outbound,
    redis,
    health,
    counts,
    version,
    baseUrl: () => started.baseUrl,
    meshUrl: () => started.meshUrl,
    ...ends,
  });
}

/** Has agents get messages from here on. @param runner null without the mesh role: then messages wait for other nodes */
function startDispatcher(
  services: Services,
  runner: DispatchRunner | null,
  { notices }: NodeLinks,
  stops: StopList,
  counts: MetricSources,
): void {
  const { core, dispatches, temporal, messages } = services;
  const watch = async (ref: Parameters<typeof temporal.startMessage>[0]) => {
    await temporal.startMessage(ref);
    counts.watched += 1;
  };
  const reachesNodes = () => notices?.isReady() ?? false;
  const dispatcher = new Dispatcher({ core, dispatches, runner, reachesNodes, watch });
  stops.add(() => dispatcher.stop());
  const { taker } = dispatcher;
  const own = runner && taker && { runner, taker };
  core.nodes = createNodes({ core, own, tell: notices && ((meshId, notice) => notices.tell(meshId, notice)) });
  messages.dispatcher = dispatcher;
  if (!own) return;
  own.runner.takeBy(own.taker);
  own.taker.start();
  notices?.listen((notice) => {
    if (notice.kind === 'fill') own.taker.fill(notice.agent);
    else core.nodes.cancel({ ...notice.dispatch, mesh_id: own.runner.meshId });
  });
}

async function listenForApi(http: FastifyInstance, config: Config, started: Started): Promise<void> {
  await http.listen({ host: config.FLEET_HOST, port: config.FLEET_API_PORT }).catch((error: unknown) => {
    throw listenError(error, 'FLEET_API_PORT');
  });
  const address = http.server.address();
  const port = typeof address === 'object' && address ? address.port : config.FLEET_API_PORT;
  started.baseUrl ||= `http://${hostInUrl(config.FLEET_HOST)}:${port}`;
}

/** Where the API is, for processes with the worker role alone: links in deliveries name it. */
async function noteBaseUrl(db: Services['db'], baseUrl: string): Promise<void> {
  const upsert = `
    INSERT INTO platform_facts (name, value) VALUES ('base_url', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
  await db.system((tx) => tx.query(upsert, [baseUrl]));
}

async function startRoles(
  services: Services,
  infrastructure: Infrastructure,
  { roles }: RunOptions,
  started: Started,
  stops: StopList,
  counts: MetricSources,
  stopping: AbortSignal,
): Promise<void> {
  const { config, log, quotas, toolUsage, spans, dataConverter } = services;
  await quotas.start();
  stops.add(() => quotas.stop());
  toolUsage.start();
  stops.add(() => toolUsage.stop());
  spans.start();
  stops.add(() => spans.stop());
  const { temporalStart: start } = services;
  stops.add(() => start.close());
  await start.connect();
  const { TEMPORAL_NAMESPACE: namespace, FLEET_TEMPORAL_ENCRYPTION: encryption } = config;
  const workerDeps: WorkerDeps = { start, namespace, dataConverter, hidesFailures: encryption === 'on', log };
  const worker = roles.has('worker')
    ? await startWorkerRole(services, infrastructure, workerDeps, () => started.baseUrl, stops)
    : null;
  // Links in deliveries name the API: where this process has it, only once it listens.
  if (!roles.has('api')) worker?.startAlerts();
  if (roles.has('knowledge')) {
    const knowledgeWorker = await runKnowledgeWorker(workerDeps, services);
    stops.add(() => knowledgeWorker.stop());
  }
  if (roles.has('mesh') || roles.has('worker')) {
    const { db, dispatches } = services;
    const deadNodes = new DeadNodes({ db, log, dispatches, clocks: config.FLEET_CLOCKS });
    deadNodes.start();
    stops.add(() => deadNodes.stop());
  }
  if (!roles.has('api') && !roles.has('mesh')) return;
  const draining = new AbortController();
  setMaxListeners(0, draining.signal); // every stream and every waiting send adds a listener
  const meshId = newId('mesh');
  const links = linkNodes(services, meshId, counts.droppedNodeMessages);
  stops.add(() => links.stop());
  const tools = startTools(services, links.tools, meshId);
  stops.add(() => tools.stop());
  const http = buildHttp(services, started, { stopping, draining: draining.signal }, tools, stops, counts);
  let mesh: Awaited<ReturnType<typeof startMesh>> | null = null;
  if (roles.has('mesh')) {
    await http.ready();
    const handler = (request: IncomingMessage, response: ServerResponse) => http.routing(request, response);
    const nodeUrl = (port: number) => ownMeshUrl(config, port);
    mesh = await startMesh({ services, infrastructure, meshId, tools, handler, nodeUrl });
    counts.mesh = mesh;
    started.meshUrl ||= ownMeshUrl(config, mesh.port) ?? '';
  }
  startDispatcher(services, mesh?.runner ?? null, links, stops, counts);
  const shutdown = new ApiShutdown(http, draining);
  stops.add(async (graceMs) => {
    // Both end before what they use is stopped, also where one fails.
    await allOrFirstFailure([shutdown.close(graceMs), mesh?.stop(graceMs)]);
  });
  if (roles.has('api')) {
    await endEarlierSignIns(services.db, config.OIDC_ROLES ?? []);
    await listenForApi(http, config, started);
    await noteBaseUrl(services.db, started.baseUrl);
    worker?.startAlerts();
  }
}

/** Starts the given roles on the infrastructure. When a component fails to start, everything started before is stopped. */
export async function startPlatform(
  options: {
    config: Config;
    run: RunOptions;
    infrastructure: Infrastructure;
    log: Logger;
  } & Omit<ProcessFacts, 'stopping'>,
): Promise<Platform> {
  const { config, run, infrastructure, log } = options;
  if (run.roles.has('api') && !run.roles.has('mesh') && !config.FLEET_MESH_URL) {
    throw new Error('The api role without the mesh role needs FLEET_MESH_URL: the address that agents connect to.');
  }
  const started: Started = {
    baseUrl: withoutTrailingSlash(config.FLEET_BASE_URL),
    meshUrl: withoutTrailingSlash(config.FLEET_MESH_URL),
  };
  const stops = new StopList();
  const services = await createServices({ ...options, baseUrl: () => started.baseUrl });
  stops.add(() => services.close());
  const stopping = new AbortController();
  const metrics = await startMetrics(services, run, { ...options, stopping: stopping.signal });
  stops.add(() => metrics.stop());
  try {
    await startRoles(services, infrastructure, run, started, stops, metrics.sources, stopping.signal);
  } catch (error) {
    await stops.stop(0, log);
    throw error;
  }
  return {
    services,
    baseUrl: started.baseUrl || null,
    meshUrl: started.meshUrl || null,
    metricsUrl: metrics.url,
    stop: async (graceMs) => {
      stopping.abort();
      await delay(config.FLEET_STOP_DELAY_MS ?? (run.development ? 0 : STOP_DELAY_MS));
      await stops.stop(graceMs, log);
    },
  };
}
