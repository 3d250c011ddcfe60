import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Authenticator } from '../../auth/authenticator.js';
import { tooManyCalls } from '../../db/errors.js';
import type { ChunkBus } from '../../messages/stream/bus.js';
import type { Config } from '../../runtime/config.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import type { SpanRecorder } from '../../telemetry/traces/span-recorder.js';
import type { ToolCalls } from '../../tools/tool-calls.js';
import { SentDispatches } from '../connected/connected-transport.js';
import { authorizeAgent } from '../connection/authorize.js';
import { Registry } from '../connection/connection.js';
import type { MeshContext, NodeDeps } from '../connection/context.js';
import { StatusWriter } from '../connection/status-writer.js';
import { AgentTools } from '../frames/tool-frames.js';
import type { Certificate } from './certificate-reload.js';
import { instanceLookup } from './instance-lookup.js';

/** What a mesh node is made with. */
export interface MeshServerOptions extends NodeDeps {
  config: Pick<Config, 'FLEET_HOST' | 'FLEET_MESH_PORT' | 'RESUME_WINDOW_MS' | 'TRUST_PROXY_CIDRS' | 'CORS_ORIGINS'>;
  /** Chunks and status texts of agents are published here. */
  bus: Pick<ChunkBus, 'publish'>;
  /** Announces decisions about tool calls, for which the deadlines of dispatches stand still. */
  changes: Pick<ChunkBus, 'subscribe'>;
  spans: SpanRecorder;
  authenticator: Authenticator;
  /** Undefined behind a proxy that ends TLS. With `read`, the node looks regularly whether the files were replaced. */
  tls: (Certificate & { read?: () => Promise<Certificate> }) | undefined;
  /** Serves the paths of the HTTP API that answer on the mesh address too. */
  handler?: (request: IncomingMessage, response: ServerResponse) => void;
  /** The tool calls of this process; its link has the same mesh id. */
  tools: ToolCalls;
  /** This node's own address (`https://…`), which no load balancer stands before; undefined when it has none. */
  nodeUrl?: () => string | undefined;
}

/**
 * How many connecting agents are written to the database at once, in all and for one tenant; the other database connections are left to
 * messages. Agents beyond a tenant's limit wait and hold up no other tenant.
 */
const [REGISTRATIONS_AT_ONCE, OF_TENANT_AT_ONCE] = [8, 4];
/** Registrations of one tenant that wait; further agents are told to connect again. */
const REGISTRATIONS_WAITING_MAX = 10_000;

/** How a mesh node ends. */
export interface Shutdown extends Pick<MeshContext, 'drainLeftMs' | 'suspended'> {
  /** Called when no tool call of an agent runs here any more. */
  onIdle(): void;
}

/** Creates the parts of a mesh node. */
export function buildContext(options: MeshServerOptions, shutdown: Shutdown): MeshContext {
  const { db, log, dispatches, fill, runner, policies, clocks, config, tools, authenticator } = options;
  const deps = { authenticator, findInstance: instanceLookup(db) };
  const registry = new Registry();
  const sent = new SentDispatches();
  const registrations = new FairSemaphore({
    limit: REGISTRATIONS_AT_ONCE,
    perKey: OF_TENANT_AT_ONCE,
    waitingMax: REGISTRATIONS_WAITING_MAX,
    refusal: tooManyCalls,
  });
  tools.pending.onAgentIdle((agentKey) => {
    registry.get(agentKey)?.becameIdle();
    shutdown.onIdle();
  });
  return {
    ...{ db, log, dispatches, fill, runner, policies, clocks },
    meshId: runner.meshId,
    resumeWindowMs: config.RESUME_WINDOW_MS,
    nodeUrl: () => options.nodeUrl?.(),
    registry,
    sent,
    transitions: {},
    tools: new AgentTools({ registry, sent, calls: tools }),
    statuses: new StatusWriter(db, log, fill),
    register: (tenantId, work) => registrations.run(tenantId, work),
    authorize: (token, instanceId) => authorizeAgent(token, instanceId, deps),
    drainLeftMs: shutdown.drainLeftMs,
    suspended: shutdown.suspended,
  };
}
