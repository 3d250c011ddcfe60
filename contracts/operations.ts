import { z } from 'zod';
import { RpcRequest, Task } from './a2a.js';
import { AgentCardResponse } from './agent-card.js';
import { AGENT_OPERATIONS } from './agent-operations.js';
import * as auth from './auth.js';
import { HealthQuery, HealthResponse } from './health.js';
import * as messages from './messages.js';
import { operation, reading } from './operation.js';
import * as sessions from './sessions.js';
import * as telemetry from './telemetry.js';
import * as tools from './tools.js';

const Jwks = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });
const AnyObject = z.record(z.string(), z.unknown());
const RpcResponse = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number(), z.null()]),
  result: Task.optional(),
  error: z.object({ code: z.int(), message: z.string(), data: z.unknown().optional() }).optional(),
});
const CONFLICT = { statuses: [409] };
const EXTENSION = { experimental: true };

/** Every operation, by a name of its own. Sections in the order of the specification. */
export const OPERATIONS = {
  getToken: operation(
    '/auth/get_token',
    'Auth',
    'public',
    'open',
    'Exchange a client id and secret for an access token',
    auth.GetTokenRequest,
    auth.GetTokenResponse,
  ),
  jwks: reading(
    '/.well-known/jwks.json',
    'Auth',
    'public',
    'open',
    'The public keys that verify tokens of this platform',
    Jwks,
    EXTENSION,
  ),
  createCredential: operation(
    '/credentials/create',
    'Credentials',
    'full',
    'forbidden',
    'Create a credential; its secret is shown once',
    auth.CredentialCreateRequest,
    auth.CredentialSecretResponse,
    EXTENSION,
  ),
  getCredentials: operation(
    '/credentials/get',
    'Credentials',
    'full',
    'forbidden',
    "List the tenant's credentials",
    auth.CredentialsGetRequest,
    auth.CredentialsGetResponse,
    EXTENSION,
  ),
  rotateCredential: operation(
    '/credentials/rotate',
    'Credentials',
    'full',
    'forbidden',
    'Give a credential a new secret',
    auth.CredentialRotateRequest,
    auth.CredentialSecretResponse,
    { ...EXTENSION, ...CONFLICT },
  ),
  revokeCredential: operation(
    '/credentials/revoke',
    'Credentials',
    'full',
    'forbidden',
    'Revoke a credential and its tokens',
    auth.CredentialRevokeRequest,
    auth.CredentialRevokeResponse,
    EXTENSION,
  ),

  initSession: operation(
    '/sessions/init',
    'Sessions',
    'read',
    'forbidden',
    'Open a session',
    sessions.SessionInitRequest,
    sessions.SessionInitResponse,
    CONFLICT,
  ),
  getSessions: operation(
    '/sessions/get',
    'Sessions',
    'read',
    'own',
    'List sessions',
    sessions.SessionsGetRequest,
    sessions.SessionsGetResponse,
  ),
  getSession: operation(
    '/sessions/get_by_id',
    'Sessions',
    'read',
    'own',
    'Read a session',
    sessions.SessionGetByIdRequest,
    sessions.SessionGetByIdResponse,
    EXTENSION,
  ),
  closeSession: operation(
    '/sessions/close',
    'Sessions',
    'read',
    'own',
    'Close a session; work in flight is canceled',
    sessions.SessionCloseRequest,
    sessions.SessionCloseResponse,
    CONFLICT,
  ),
  interruptSessions: operation(
    '/sessions/interrupt',
    'Sessions',
    'read',
    'own',
    'Cancel what is in flight; the sessions stay usable',
    sessions.SessionsInterruptRequest,
    sessions.SessionsInterruptResponse,
  ),
  inviteAgent: operation(
    '/sessions/invite',
    'Sessions',
    'read',
    'forbidden',
    'Add an agent of a type to a session',
    sessions.SessionInviteRequest,
    sessions.SessionInviteResponse,
    { ...EXTENSION, ...CONFLICT },
  ),

  send: operation(
    '/send',
    'Messages',
    'read',
    'own',
    'A2A 0.3 and 1.0 over JSON-RPC, by A2A-Version; streams are server-sent events',
    RpcRequest,
    RpcResponse,
    { a2aVersions: true },
  ),
  getMessages: operation(
    '/messages/get',
    'Messages',
    'read',
    'own',
    'List messages',
    messages.MessagesGetRequest,
    messages.MessagesGetResponse,
  ),
  getMessage: operation(
    '/messages/get_by_id',
    'Messages',
    'read',
    'own',
    'Read a message',
    messages.MessageGetByIdRequest,
    messages.MessageGetByIdResponse,
  ),
  cancelMessage: operation(
    '/messages/cancel',
    'Messages',
    'read',
    'own',
    'Cancel a message',
    messages.MessageCancelRequest,
    messages.MessageCancelResponse,
    CONFLICT,
  ),
  pendingMessages: operation(
    '/messages/pending',
    'Messages',
    'read',
    'forbidden',
    'Messages that wait for a human',
    messages.MessagesPendingRequest,
    messages.MessagesPendingResponse,
  ),
  resolveMessage: operation(
    '/messages/:id/resolve',
    'Messages',
    'optional',
    'forbidden',
    'Answer what a message waits for',
    messages.ResolveRequest,
    messages.ResolveResponse,
    { statuses: [409, 410] },
  ),

  ...AGENT_OPERATIONS,

  callTool: tools.CALL_TOOL,

  getEvents: operation(
    '/telemetry/get_events',
    'Telemetry',
    'read',
    'forbidden',
    'List events',
    telemetry.GetEventsRequest,
    telemetry.GetEventsResponse,
  ),

  health: {
    ...reading('/health', 'Platform', 'public', 'open', 'Health of the platform', HealthResponse),
    query: HealthQuery,
  },
  agentCard: reading(
    '/.well-known/agent-card.json',
    'Platform',
    'optional',
    'open',
    'The A2A agent card: 0.3, or 1.0 by A2A-Version; with a token, the skills of its fleet',
    AgentCardResponse,
    { statuses: [304, 401, 500, 503], a2aVersions: true },
  ),
  openapi: reading('/openapi.json', 'Platform', 'public', 'open', 'This description', AnyObject, EXTENSION),
} as const;
