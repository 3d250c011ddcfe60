import { z } from 'zod';
import { RpcRequest, RpcResponse } from '../a2a/a2a.js';
import { AgentCardResponse } from '../a2a/agent-card.js';
import * as agents from './agents.js';
import * as auth from './auth.js';
import { HealthQuery, HealthResponse } from './health.js';
import * as messages from './messages.js';
import { ADMIN, FULL, get, OWN, PUBLIC, post, TENANT } from './operation.js';
import * as sessions from './sessions.js';
import * as telemetry from './telemetry.js';
import * as tools from './tools.js';

const AnyObject = z.record(z.string(), z.unknown());
const CONFLICT = { statuses: [409] };
const EXTENSION = { experimental: true };

/** All operations, in the order of the specification. */
export const OPERATIONS = {
  getToken: post('/auth/get_token', 'Auth', PUBLIC, 'Exchange a client id and secret for an access token', {
    request: auth.GetTokenRequest,
    response: auth.GetTokenResponse,
  }),
  jwks: get('/.well-known/jwks.json', 'Auth', PUBLIC, 'The public keys that verify tokens of this platform', {
    response: auth.Jwks,
    ...EXTENSION,
  }),
  createCredential: post('/credentials/create', 'Credentials', FULL, 'Create a credential; its secret is shown once', {
    request: auth.CredentialCreateRequest,
    response: auth.CredentialSecretResponse,
    ...EXTENSION,
  }),
  getCredentials: post('/credentials/get', 'Credentials', FULL, "List the tenant's credentials", {
    request: auth.CredentialsGetRequest,
    response: auth.CredentialsGetResponse,
    ...EXTENSION,
  }),
  rotateCredential: post('/credentials/rotate', 'Credentials', FULL, 'Give a credential a new secret', {
    request: auth.CredentialRotateRequest,
    response: auth.CredentialSecretResponse,
    ...EXTENSION,
    ...CONFLICT,
  }),
  revokeCredential: post('/credentials/revoke', 'Credentials', FULL, 'Revoke a credential and its tokens', {
    request: auth.CredentialRevokeRequest,
    response: auth.CredentialRevokeResponse,
    ...EXTENSION,
  }),

  initSession: post('/sessions/init', 'Sessions', TENANT, 'Open a session', {
    request: sessions.SessionInitRequest,
    response: sessions.SessionInitResponse,
    ...CONFLICT,
  }),
  getSessions: post('/sessions/get', 'Sessions', OWN, 'List sessions', {
    request: sessions.SessionsGetRequest,
    response: sessions.SessionsGetResponse,
  }),
  getSession: post('/sessions/get_by_id', 'Sessions', OWN, 'Read a session', {
    request: sessions.SessionGetByIdRequest,
    response: sessions.SessionGetByIdResponse,
    ...EXTENSION,
  }),
  closeSession: post('/sessions/close', 'Sessions', OWN, 'Close a session; work in flight is canceled', {
    request: sessions.SessionCloseRequest,
    response: sessions.SessionCloseResponse,
    ...CONFLICT,
  }),
  interruptSessions: post(
    '/sessions/interrupt',
    'Sessions',
    OWN,
    'Cancel what is in flight; the sessions stay usable',
    {
      request: sessions.SessionsInterruptRequest,
      response: sessions.SessionsInterruptResponse,
    },
  ),
  inviteAgent: post('/sessions/invite', 'Sessions', TENANT, 'Add an agent of a type to a session', {
    request: sessions.SessionInviteRequest,
    response: sessions.SessionInviteResponse,
    ...EXTENSION,
    ...CONFLICT,
  }),

  send: post(
    '/send',
    'Messages',
    OWN,
    'A2A 0.3 and 1.0 over JSON-RPC, by A2A-Version; streams are server-sent events',
    {
      request: RpcRequest,
      response: RpcResponse,
      a2aVersions: true,
    },
  ),
  getMessages: post('/messages/get', 'Messages', OWN, 'List messages', {
    request: messages.MessagesGetRequest,
    response: messages.MessagesGetResponse,
  }),
  getMessage: post('/messages/get_by_id', 'Messages', OWN, 'Read a message', {
    request: messages.MessageGetByIdRequest,
    response: messages.MessageGetByIdResponse,
  }),
  cancelMessage: post('/messages/cancel', 'Messages', OWN, 'Cancel a message', {
    request: messages.MessageCancelRequest,
    response: messages.MessageCancelResponse,
    ...CONFLICT,
  }),
  pendingMessages: post('/messages/pending', 'Messages', TENANT, 'Messages that wait for a human', {
    request: messages.MessagesPendingRequest,
    response: messages.MessagesPendingResponse,
  }),
  resolveMessage: post(
    '/messages/:id/resolve',
    'Messages',
    { access: 'optional', agents: 'forbidden' },
    'Answer what a message waits for',
    {
      request: messages.ResolveRequest,
      response: messages.ResolveResponse,
      statuses: [409, 410],
    },
  ),

  registerAgent: post('/agents/register', 'Agents', OWN, 'Register an agent, or register it again', {
    request: agents.AgentRegisterRequest,
    response: agents.AgentRegisterResponse,
    ...CONFLICT,
    othersNeed: 'full',
  }),
  heartbeat: post('/agents/heartbeat', 'Agents', OWN, 'Report that an agent is alive', {
    request: agents.AgentHeartbeatRequest,
    response: agents.OkResponse,
    othersNeed: 'admin',
  }),
  getAgents: post('/agents/get', 'Agents', TENANT, 'List agents', {
    request: agents.AgentsGetRequest,
    response: agents.AgentsGetResponse,
    ...EXTENSION,
  }),
  getAgent: post('/agents/get_by_id', 'Agents', OWN, 'Read an agent', {
    request: agents.AgentGetByIdRequest,
    response: agents.AgentGetByIdResponse,
  }),
  deregisterAgent: post('/agents/deregister', 'Agents', OWN, 'Take an agent out: no new work, sessions unbound', {
    request: agents.AgentDeregisterRequest,
    response: agents.AgentDeregisterResponse,
    othersNeed: 'admin',
  }),
  connectAgent: get(
    '/agents/connect',
    'Agents',
    { access: 'public', agents: 'own' },
    'WebSocket upgrade for connected agents, on the mesh address (wss, subprotocol service.v1)',
    {
      response: AnyObject,
      statuses: [400, 401, 403, 404, 409, 426, 503],
    },
  ),
  getConnection: post(
    '/agents/get_connection',
    'Agents',
    OWN,
    'Read how an agent is reached, and how its dispatches fared',
    {
      request: agents.AgentGetByIdRequest,
      response: agents.AgentConnectionResponse,
      ...EXTENSION,
    },
  ),
  getConnectionStats: post(
    '/agents/get_connection_stats',
    'Agents',
    TENANT,
    'Count agents by mode, status and transport',
    {
      request: agents.ConnectionStatsRequest,
      response: agents.ConnectionStatsResponse,
      ...EXTENSION,
    },
  ),
  allowType: post(
    '/agents/allow_type',
    'Agents',
    ADMIN,
    'Put an agent type on the list of those that may join; without a list every type may',
    {
      request: agents.AgentTypeRequest,
      response: agents.AllowTypeResponse,
      ...EXTENSION,
    },
  ),
  disallowType: post('/agents/disallow_type', 'Agents', ADMIN, 'Keep an agent type out and deregister its instances', {
    request: agents.AgentTypeRequest,
    response: agents.DisallowTypeResponse,
    ...EXTENSION,
  }),
  setDefaultType: post(
    '/agents/set_default',
    'Agents',
    ADMIN,
    'Set the agent type that gets messages which name no target',
    {
      request: agents.SetDefaultTypeRequest,
      response: agents.SetDefaultTypeResponse,
      ...EXTENSION,
    },
  ),

  callTool: post(
    '/tools/call',
    'Tools',
    OWN,
    'Call a tool of another agent, or of the platform, on behalf of an agent without a socket',
    {
      request: tools.ToolCallRequest,
      response: tools.ToolResult,
      experimental: true,
      othersNeed: 'full',
    },
  ),

  getEvents: post('/telemetry/get_events', 'Telemetry', TENANT, 'List events', {
    request: telemetry.GetEventsRequest,
    response: telemetry.GetEventsResponse,
  }),

  health: get('/health', 'Platform', PUBLIC, 'Health of the platform', {
    response: HealthResponse,
    query: HealthQuery,
  }),
  agentCard: get(
    '/.well-known/agent-card.json',
    'Platform',
    { access: 'optional', agents: 'open' },
    'The A2A agent card: 0.3, or 1.0 by A2A-Version; with a token, the skills of its fleet',
    {
      response: AgentCardResponse,
      statuses: [304, 401, 500, 503],
      a2aVersions: true,
    },
  ),
  openapi: get('/openapi.json', 'Platform', PUBLIC, 'This description', { response: AnyObject, ...EXTENSION }),
} as const;
