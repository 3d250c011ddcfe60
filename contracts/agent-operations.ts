import { z } from 'zod';
import * as agents from './agents.js';
import { operation, reading } from './operation.js';

const AnyObject = z.record(z.string(), z.unknown());
const CONFLICT = { statuses: [409] };
const EXTENSION = { experimental: true };

/** The operations on agents (decisions.md, Agents), by names of their own. */
export const AGENT_OPERATIONS = {
  registerAgent: operation(
    '/agents/register',
    'Agents',
    'read',
    'Register an agent, or register it again',
    agents.AgentRegisterRequest,
    agents.AgentRegisterResponse,
    { ...CONFLICT, othersNeed: 'full' },
  ),
  heartbeat: operation(
    '/agents/heartbeat',
    'Agents',
    'read',
    'Report that an agent is alive',
    agents.AgentHeartbeatRequest,
    agents.OkResponse,
    { othersNeed: 'admin' },
  ),
  getAgents: operation(
    '/agents/get',
    'Agents',
    'read',
    'List agents',
    agents.AgentsGetRequest,
    agents.AgentsGetResponse,
    EXTENSION,
  ),
  getAgent: operation(
    '/agents/get_by_id',
    'Agents',
    'read',
    'Read an agent',
    agents.AgentGetByIdRequest,
    agents.AgentGetByIdResponse,
  ),
  deregisterAgent: operation(
    '/agents/deregister',
    'Agents',
    'read',
    'Take an agent out: no new work, sessions unbound',
    agents.AgentDeregisterRequest,
    agents.AgentDeregisterResponse,
    { othersNeed: 'admin' },
  ),
  connectAgent: reading(
    '/agents/connect',
    'Agents',
    'public',
    'WebSocket upgrade for connected agents, on the mesh address (wss, subprotocol service.v1)',
    AnyObject,
    { statuses: [400, 401, 403, 404, 409, 426, 503] },
  ),
  getConnection: operation(
    '/agents/get_connection',
    'Agents',
    'read',
    'Read how an agent is reached, and how its dispatches fared',
    agents.AgentGetByIdRequest,
    agents.AgentConnectionResponse,
    EXTENSION,
  ),
  getConnectionStats: operation(
    '/agents/get_connection_stats',
    'Agents',
    'read',
    'Count agents by mode, status and transport',
    agents.ConnectionStatsRequest,
    agents.ConnectionStatsResponse,
    EXTENSION,
  ),
  allowType: operation(
    '/agents/allow_type',
    'Agents',
    'admin',
    'Put an agent type on the list of those that may join; without a list every type may',
    agents.AgentTypeRequest,
    agents.AllowTypeResponse,
    EXTENSION,
  ),
  disallowType: operation(
    '/agents/disallow_type',
    'Agents',
    'admin',
    'Keep an agent type out and deregister its instances',
    agents.AgentTypeRequest,
    agents.DisallowTypeResponse,
    EXTENSION,
  ),
} as const;
