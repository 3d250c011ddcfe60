import { z } from 'zod';
import * as agents from './agents.js';
import { operation, reading } from './operation.js';

const AnyObject = z.record(z.string(), z.unknown());
const CONFLICT = { statuses: [409] };

/** The operations on agents (decisions.md, Agents), by names of their own. */
export const AGENT_OPERATIONS = {
  registerAgent: operation(
    '/agents/register',
    'Agents',
    'read',
    'own',
    'Register an agent, or register it again',
    agents.AgentRegisterRequest,
    agents.AgentRegisterResponse,
    CONFLICT,
  ),
  heartbeat: operation(
    '/agents/heartbeat',
    'Agents',
    'read',
    'own',
    'Report that an agent is alive',
    agents.AgentHeartbeatRequest,
    agents.OkResponse,
  ),
  getAgents: operation(
    '/agents/get',
    'Agents',
    'read',
    'forbidden',
    'List agents',
    agents.AgentsGetRequest,
    agents.AgentsGetResponse,
  ),
  getAgent: operation(
    '/agents/get_by_id',
    'Agents',
    'read',
    'own',
    'Read an agent',
    agents.AgentGetByIdRequest,
    agents.AgentGetByIdResponse,
  ),
  deregisterAgent: operation(
    '/agents/deregister',
    'Agents',
    'read',
    'own',
    'Take an agent out: no new work, sessions unbound',
    agents.AgentDeregisterRequest,
    agents.AgentDeregisterResponse,
  ),
  connectAgent: reading(
    '/agents/connect',
    'Agents',
    'public',
    'own',
    'WebSocket upgrade for connected agents, on the mesh address (wss, subprotocol service.v1)',
    AnyObject,
    [400, 401, 403, 404, 409, 426, 503],
  ),
  getConnection: operation(
    '/agents/get_connection',
    'Agents',
    'read',
    'own',
    'Read how an agent is reached, and how its dispatches fared',
    agents.AgentGetByIdRequest,
    agents.AgentConnectionResponse,
  ),
  getConnectionStats: operation(
    '/agents/get_connection_stats',
    'Agents',
    'read',
    'forbidden',
    'Count agents by mode, status and transport',
    agents.ConnectionStatsRequest,
    agents.ConnectionStatsResponse,
  ),
  allowType: operation(
    '/agents/allow_type',
    'Agents',
    'admin',
    'forbidden',
    'Put an agent type on the list of those that may join; without a list every type may',
    agents.AgentTypeRequest,
    agents.AllowTypeResponse,
  ),
  disallowType: operation(
    '/agents/disallow_type',
    'Agents',
    'admin',
    'forbidden',
    'Keep an agent type out and deregister its instances',
    agents.AgentTypeRequest,
    agents.DisallowTypeResponse,
  ),
} as const;
