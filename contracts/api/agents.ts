import { z } from 'zod';
import { LIMITS } from '../limits.js';
import {
  AgentType,
  AgentTypeOfAgents,
  AnyId,
  InstanceId,
  JsonObject,
  Metadata,
  ok,
  okPage,
  pageFields,
  Reason,
  Timestamp,
  within,
} from '../primitives.js';
import { DispatchAuth, ShownDispatchAuth } from './dispatch-auth.js';
import { ADMIN, CONFLICT, EXTENSION, get, OWN, post, TENANT } from './operation.js';

export const DeploymentMode = z.enum(['hosted', 'connected']);
export type DeploymentMode = z.infer<typeof DeploymentMode>;
/** An agent at capacity shows `busy`. `available` and `unknown` agents are routable. */
export const AGENT_STATUSES = ['available', 'busy', 'draining', 'unhealthy', 'offline', 'unknown'] as const;
export const AgentStatus = z.enum(AGENT_STATUSES);
export type AgentStatus = z.infer<typeof AgentStatus>;

const Skill = z.looseObject({ id: z.string().min(1).max(256), name: z.string().max(256).optional() });
const Tool = z.union([
  z.string().min(1).max(256),
  z.object({
    name: z.string().min(1).max(256),
    description: z.string().max(4096).optional(),
    input_schema: JsonObject.optional(),
  }),
]);
export const Skills = within(LIMITS.skillsBytes, z.array(Skill).max(200));
export const Tools = within(LIMITS.toolsBytes, z.array(Tool).max(200));
export const AgentCard = within(LIMITS.cardBytes, JsonObject);
export const AgentInstance = z.object({
  instance_id: z.string(),
  agent_type: z.string(),
  public_url: z.string().nullable(),
  deployment_mode: DeploymentMode,
  tenant_id: z.string(),
  mesh_id: z.string().nullable(),
  status: AgentStatus,
  current_sessions: z.int(),
  max_concurrent_sessions: z.int(),
  max_concurrent_tasks: z.int(),
  consecutive_failures: z.int(),
  last_seen: Timestamp.nullable(),
  registered_at: Timestamp,
  agent_version: z.string().nullable(),
  provider_organization: z.string().nullable(),
  provider_url: z.string().nullable(),
  agent_card: JsonObject,
  context: JsonObject,
});
export type AgentInstance = z.infer<typeof AgentInstance>;

/** An agent in the list, with what it has to do and how it has fared in the last hour. */
export const ListedAgent = z.object({
  ...AgentInstance.shape,
  /** Messages that wait for this instance alone. */
  queue_length: z.int(),
  /** Messages that it has. */
  in_flight: z.int(),
  sent_per_minute: z.int(),
  /** Messages of the last hour that it failed. */
  failed_last_hour: z.int(),
  /** As in `/agents/get_connection`. */
  latency_ms: z.object({ p50: z.number().nullable(), p95: z.number().nullable() }),
  /** The code of the newest failure of the last hour, or of the last ten messages. */
  last_error: z.string().optional(),
  /** Since when five or more of its last ten messages have failed. */
  failing_since: Timestamp.optional(),
});
export type ListedAgent = z.infer<typeof ListedAgent>;

const PublicUrl = z.url({ protocol: /^https?$/ }).max(2048);
export const AgentRegisterRequest = z
  .strictObject({
    agent_type: AgentTypeOfAgents,
    instance_id: InstanceId.optional(),
    deployment_mode: DeploymentMode.optional(),
    public_url: PublicUrl.optional(),
    url: PublicUrl.optional(),
    agent_card: AgentCard.optional(),
    skills: Skills.optional(),
    tools: Tools.optional(),
    max_concurrent_sessions: z.int().min(0).max(1_000_000).default(LIMITS.maxConcurrentSessionsDefault),
    /** Messages at once over all sessions; 0 is unlimited. */
    max_concurrent_tasks: z.int().min(0).max(1_000_000).default(0),
    agent_version: z.string().max(128).optional(),
    provider_organization: z.string().max(256).optional(),
    provider_url: z.string().max(2048).optional(),
    context: Metadata.optional(),
    /** How the platform authenticates to a hosted agent: `bearer_jwt`, its own token, by default. */
    dispatch_auth: DispatchAuth.optional(),
  })
  .refine((body) => body.public_url === undefined || body.url === undefined, 'give either public_url or url');
export type AgentRegisterRequest = z.infer<typeof AgentRegisterRequest>;
export const AgentRegisterResponse = ok({
  tenant_id: z.string(),
  instance_id: z.string(),
  deployment_mode: DeploymentMode,
  connect_url: z.string().nullable(),
  jwks_url: z.string(),
  dispatch_auth: ShownDispatchAuth,
  agent: AgentInstance,
  /** What was registered otherwise than asked: tools that other agent types own. */
  warnings: z.array(z.string()).optional(),
});

/** Payload of the `heartbeat` frame; unknown members are ignored. */
export const HeartbeatPayload = z.object({
  instance_id: InstanceId.optional(),
  status: z.enum(['available', 'busy', 'draining', 'unhealthy']).optional(),
  current_sessions: z.int().min(0).max(LIMITS.reportedSessionsMax).optional(),
  max_concurrent_sessions: z.int().min(0).max(1_000_000).optional(),
  max_concurrent_tasks: z.int().min(0).max(1_000_000).optional(),
  consecutive_failures: z.int().min(0).max(1_000_000).optional(),
});
export type HeartbeatPayload = z.infer<typeof HeartbeatPayload>;
const HeartbeatBody = z.strictObject({ ...HeartbeatPayload.shape, instance_id: InstanceId });

export const OkResponse = ok({});
export const AgentGetByIdResponse = ok({ agent: AgentInstance });
const AgentsGetRequest = z.strictObject({
  ...pageFields,
  status: AgentStatus.optional(),
  agent_type: AgentType.optional(),
  deployment_mode: DeploymentMode.optional(),
  /** True: only those of whose last ten messages five or more have failed. */
  failing: z.literal(true).optional(),
  /** Only agents that are registered, or only those that no longer are. */
  registered: z.boolean().optional(),
});
export type AgentsGetRequest = z.infer<typeof AgentsGetRequest>;
export const AgentsGetResponse = okPage({ agents: z.array(ListedAgent) });

/** An agent type: what its registered instances have to do, and how they have fared in the last hour. */
export const AgentTypeActivity = z.object({
  agent_type: z.string(),
  /** Registered instances. None: messages wait for the type all the same, or it failed some and left. */
  instances: z.int(),
  /** Of these: connected, or hosted and not known to be away. */
  online: z.int(),
  draining: z.int(),
  unhealthy: z.int(),
  /** Messages that its instances have. */
  in_flight: z.int(),
  /** Sessions that those online may have at once; null where one of them has no limit. */
  max_concurrent_sessions: z.int().nullable(),
  /** Messages that wait for the type, for one of its skills or for one of its instances. */
  queue_length: z.int(),
  /** When the first of these was accepted. */
  queued_since: Timestamp.optional(),
  /** Messages of the last hour that it failed. */
  failed_last_hour: z.int(),
  /** The code of the newest failure of the last hour, or of the last ten messages of an instance that fails. */
  last_error: z.string().optional(),
  /** Instances of whose last ten messages five or more failed. */
  failing: z.int(),
  /** Since when the first of these fails. */
  failing_since: Timestamp.optional(),
});
export type AgentTypeActivity = z.infer<typeof AgentTypeActivity>;
export const AgentTypesResponse = ok({ agent_types: z.array(AgentTypeActivity) });

const ConnectionStatus = z.enum(['unknown', 'online', 'healthy', 'degraded', 'offline']);
export type ConnectionStatus = z.infer<typeof ConnectionStatus>;
/** The dispatches of so many seconds make up `latency_ms`. */
export const LATENCY_WINDOW_SECONDS = 3_600;
const AgentConnection = z.object({
  transport: z.enum(['ws', 'callback']),
  connection_status: ConnectionStatus,
  /** Why it is `degraded`. */
  degraded_reason: z.string().optional(),
  /** The node that holds the agent's socket. */
  owner_mesh_id: z.string().nullable(),
  connected_since: Timestamp.nullable(),
  last_dispatch_at: Timestamp.nullable(),
  dispatches_succeeded: z.int(),
  dispatches_failed: z.int(),
  last_dispatch_error: z.string().nullable(),
  /** How long its dispatches took, waits for people left out; null without any in the window. */
  latency_ms: z.object({
    p50: z.number().nullable(),
    p95: z.number().nullable(),
    count: z.int(),
    window_seconds: z.literal(LATENCY_WINDOW_SECONDS),
  }),
  status: AgentStatus,
  last_seen: Timestamp.nullable(),
});
export type AgentConnection = z.infer<typeof AgentConnection>;
export const AgentConnectionResponse = ok({ connection: AgentConnection });

const ConnectionStats = z.object({
  total: z.int(),
  by_deployment_mode: z.record(DeploymentMode, z.int()),
  by_status: z.record(AgentStatus, z.int()),
  by_transport: z.object({ ws: z.int(), callback: z.int() }),
});
export type ConnectionStats = z.infer<typeof ConnectionStats>;
export const ConnectionStatsResponse = ok({ stats: ConnectionStats });

/** `status`: as `/agents/get_by_id` shows it then. */
const DrainResponse = ok({ instance_id: z.string(), status: AgentStatus });

export const SetDefaultTypeResponse = ok({ default_agent_type: z.string().nullable() });
export const AllowTypeResponse = ok({ agent_type: z.string(), was_new: z.boolean() });
export const DisallowTypeResponse = ok({
  agent_type: z.string(),
  removed_from_policy: z.boolean(),
  deregistered_count: z.int(),
});

export const AGENT_OPERATIONS = {
  registerAgent: post('/agents/register', OWN, 'Register an agent, or register it again', {
    request: AgentRegisterRequest,
    response: AgentRegisterResponse,
    ...CONFLICT,
    othersNeed: 'full',
  }),
  heartbeat: post('/agents/heartbeat', OWN, 'Report that an agent is alive', {
    request: z.union([
      HeartbeatBody,
      z.strictObject({
        v: z.literal(1),
        type: z.string().optional(),
        id: z.string().optional(),
        ts: z.string().optional(),
        payload: HeartbeatBody,
      }),
    ]),
    response: OkResponse,
    othersNeed: 'admin',
  }),
  getAgents: post('/agents/get', TENANT, 'List agents', {
    request: AgentsGetRequest,
    response: AgentsGetResponse,
    ...EXTENSION,
  }),
  getAgentTypes: post('/agents/get_types', TENANT, 'What each agent type has to do, and how it fares', {
    request: z.strictObject({}),
    response: AgentTypesResponse,
    ...EXTENSION,
  }),
  getAgent: post('/agents/get_by_id', OWN, 'Read an agent', {
    request: z.strictObject({ instance_id: AnyId }),
    response: AgentGetByIdResponse,
  }),
  deregisterAgent: post('/agents/deregister', OWN, 'Take an agent out: no new work, sessions unbound', {
    request: z.strictObject({ instance_id: AnyId, reason: Reason }),
    response: ok({ instance_id: z.string() }),
    othersNeed: 'admin',
  }),
  drainAgent: post('/agents/drain', OWN, 'Send an agent nothing new until /agents/undrain, whatever it reports', {
    request: z.strictObject({ instance_id: AnyId }),
    response: DrainResponse,
    othersNeed: 'admin',
    ...EXTENSION,
  }),
  undrainAgent: post('/agents/undrain', OWN, 'Let an agent that was drained take messages again', {
    request: z.strictObject({ instance_id: AnyId }),
    response: DrainResponse,
    othersNeed: 'admin',
    ...EXTENSION,
  }),
  connectAgent: get(
    '/agents/connect',
    { access: 'public', agents: 'own' },
    'WebSocket upgrade for connected agents, on the mesh address (wss, subprotocol service.v1)',
    { response: JsonObject, statuses: [400, 401, 403, 404, 409, 426, 503] },
  ),
  getConnection: post('/agents/get_connection', OWN, 'Read how an agent is reached, and how its dispatches fared', {
    request: z.strictObject({ instance_id: AnyId }),
    response: AgentConnectionResponse,
    ...EXTENSION,
  }),
  getConnectionStats: post('/agents/get_connection_stats', TENANT, 'Count agents by mode, status and transport', {
    request: z.strictObject({ agent_type: AgentType.optional() }),
    response: ConnectionStatsResponse,
    ...EXTENSION,
  }),
  allowType: post(
    '/agents/allow_type',
    ADMIN,
    'Put an agent type on the list of those that may join; without a list every type may',
    { request: z.strictObject({ agent_type: AgentTypeOfAgents }), response: AllowTypeResponse, ...EXTENSION },
  ),
  disallowType: post('/agents/disallow_type', ADMIN, 'Keep an agent type out and deregister its instances', {
    request: z.strictObject({ agent_type: AgentTypeOfAgents }),
    response: DisallowTypeResponse,
    ...EXTENSION,
  }),
  setDefaultType: post('/agents/set_default', ADMIN, 'Set the agent type that gets messages which name no target', {
    request: z.strictObject({ agent_type: AgentTypeOfAgents.nullable() }),
    response: SetDefaultTypeResponse,
    ...EXTENSION,
  }),
};
