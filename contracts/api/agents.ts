import { z } from 'zod';
import { LIMITS } from '../limits.js';
import {
  AgentType,
  AgentTypeOfAgents,
  AnyId,
  freeObject,
  InstanceId,
  listFields,
  Metadata,
  pageFields,
  Timestamp,
  within,
} from '../primitives.js';

export const DeploymentMode = z.enum(['hosted', 'connected']);
export type DeploymentMode = z.infer<typeof DeploymentMode>;
/** An agent at capacity shows `busy`. `available` and `unknown` agents are routable (decisions.md, Agents). */
export const AGENT_STATUSES = ['available', 'busy', 'draining', 'unhealthy', 'offline', 'unknown'] as const;
export const AgentStatus = z.enum(AGENT_STATUSES);
export type AgentStatus = z.infer<typeof AgentStatus>;

const Skill = z.looseObject({ id: z.string().min(1).max(256), name: z.string().max(256).optional() });
const Tool = z.union([
  z.string().min(1).max(256),
  z.object({
    name: z.string().min(1).max(256),
    description: z.string().max(4096).optional(),
    input_schema: z.record(z.string(), z.unknown()).optional(),
  }),
]);
export const Skills = within(LIMITS.skillsBytes, z.array(Skill).max(200));
export const Tools = within(LIMITS.toolsBytes, z.array(Tool).max(200));
export const AgentCard = freeObject(LIMITS.cardBytes);
/** How the mesh authenticates to a hosted agent; `bearer_jwt` is the only method. */
const DispatchAuth = z.object({ type: z.literal('bearer_jwt') });

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
  consecutive_failures: z.int(),
  last_seen: Timestamp.nullable(),
  registered_at: Timestamp,
  agent_version: z.string().nullable(),
  provider_organization: z.string().nullable(),
  provider_url: z.string().nullable(),
  agent_card: z.record(z.string(), z.unknown()),
  context: z.record(z.string(), z.unknown()),
});
export type AgentInstance = z.infer<typeof AgentInstance>;

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
    agent_version: z.string().max(128).optional(),
    provider_organization: z.string().max(256).optional(),
    provider_url: z.string().max(2048).optional(),
    context: Metadata.optional(),
    dispatch_auth: DispatchAuth.optional(),
  })
  .refine((body) => body.public_url === undefined || body.url === undefined, {
    message: 'give either public_url or url',
  });
export type AgentRegisterRequest = z.infer<typeof AgentRegisterRequest>;
export const AgentRegisterResponse = z.object({
  ok: z.literal(true),
  tenant_id: z.string(),
  instance_id: z.string(),
  deployment_mode: DeploymentMode,
  connect_url: z.string().nullable(),
  jwks_url: z.string(),
  dispatch_auth: DispatchAuth,
  agent: AgentInstance,
});

const heartbeatFields = {
  status: z.enum(['available', 'busy', 'draining', 'unhealthy']).optional(),
  current_sessions: z.int().min(0).max(LIMITS.reportedSessionsMax).optional(),
  max_concurrent_sessions: z.int().min(0).max(1_000_000).optional(),
  consecutive_failures: z.int().min(0).max(1_000_000).optional(),
};
/** Payload of the `heartbeat` frame; unknown members are ignored. */
export const HeartbeatPayload = z.object({ instance_id: InstanceId.optional(), ...heartbeatFields });
export type HeartbeatPayload = z.infer<typeof HeartbeatPayload>;
const HeartbeatBody = z.strictObject({ instance_id: InstanceId, ...heartbeatFields });
export const AgentHeartbeatRequest = z.union([
  HeartbeatBody,
  z.strictObject({
    v: z.literal(1),
    type: z.string().optional(),
    id: z.string().optional(),
    ts: z.string().optional(),
    payload: HeartbeatBody,
  }),
]);
export const OkResponse = z.object({ ok: z.literal(true) });

export const AgentGetByIdRequest = z.strictObject({ instance_id: AnyId });
export const AgentGetByIdResponse = z.object({ ok: z.literal(true), agent: AgentInstance });
export const AgentsGetRequest = z.strictObject({
  ...pageFields,
  status: AgentStatus.optional(),
  agent_type: AgentType.optional(),
  deployment_mode: DeploymentMode.optional(),
});
export type AgentsGetRequest = z.infer<typeof AgentsGetRequest>;
export const AgentsGetResponse = z.object({ ...listFields, agents: z.array(AgentInstance) });
export const AgentDeregisterRequest = z.strictObject({ instance_id: AnyId, reason: z.string().max(1024).optional() });
export const AgentDeregisterResponse = z.object({ ok: z.literal(true), instance_id: z.string() });

const ConnectionStatus = z.enum(['unknown', 'online', 'healthy', 'degraded', 'offline']);
export type ConnectionStatus = z.infer<typeof ConnectionStatus>;
const AgentConnection = z.object({
  transport: z.enum(['ws', 'callback']),
  connection_status: ConnectionStatus,
  /** The node that holds the agent's socket. */
  owner_mesh_id: z.string().nullable(),
  connected_since: Timestamp.nullable(),
  last_dispatch_at: Timestamp.nullable(),
  dispatches_succeeded: z.int(),
  dispatches_failed: z.int(),
  last_dispatch_error: z.string().nullable(),
  status: AgentStatus,
  last_seen: Timestamp.nullable(),
});
export type AgentConnection = z.infer<typeof AgentConnection>;
export const AgentConnectionResponse = z.object({ ok: z.literal(true), connection: AgentConnection });

const ConnectionStats = z.object({
  total: z.int(),
  by_deployment_mode: z.record(DeploymentMode, z.int()),
  by_status: z.record(AgentStatus, z.int()),
  by_transport: z.object({ ws: z.int(), callback: z.int() }),
});
export type ConnectionStats = z.infer<typeof ConnectionStats>;
export const ConnectionStatsRequest = z.strictObject({ agent_type: AgentType.optional() });
export const ConnectionStatsResponse = z.object({ ok: z.literal(true), stats: ConnectionStats });

/** The agent type to allow or disallow (decisions.md, Agents). */
export const AgentTypeRequest = z.strictObject({ agent_type: AgentTypeOfAgents });
/** The agent type for messages without a target; null for none. */
export const SetDefaultTypeRequest = z.strictObject({ agent_type: AgentTypeOfAgents.nullable() });
export const SetDefaultTypeResponse = z.object({ ok: z.literal(true), default_agent_type: z.string().nullable() });
export const AllowTypeResponse = z.object({ ok: z.literal(true), agent_type: z.string(), was_new: z.boolean() });
export const DisallowTypeResponse = z.object({
  ok: z.literal(true),
  agent_type: z.string(),
  removed_from_policy: z.boolean(),
  deregistered_count: z.int(),
});
