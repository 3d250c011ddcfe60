import { z } from 'zod';
import { AgentCardResponse } from '../a2a/agent-card.js';
import { JsonObject } from '../primitives.js';
import { AGENT_OPERATIONS } from './agents.js';
import { ALERT_OPERATIONS } from './alerts.js';
import { AUTH_OPERATIONS, CREDENTIAL_OPERATIONS } from './auth.js';
import { DELIVERY_OPERATIONS } from './deliveries.js';
import { HealthQuery, HealthResponse, PlatformHealth } from './health.js';
import { KNOWLEDGE_OPERATIONS } from './knowledge/knowledge-operations.js';
import { MESSAGE_OPERATIONS } from './messages.js';
import { EXTENSION, get, OPERATOR, PUBLIC, post } from './operation.js';
import { PLAN_OPERATIONS } from './plans.js';
import { APPROVAL_OPERATIONS } from './policies/approvals.js';
import { BACKTEST_OPERATIONS } from './policies/backtest.js';
import { GUARD_OPERATIONS } from './policies/guards.js';
import { POLICY_OPERATIONS } from './policies/policies.js';
import { REQUEST_OPERATIONS } from './policies/requests.js';
import { SESSION_OPERATIONS } from './sessions.js';
import { TELEMETRY_OPERATIONS } from './telemetry.js';
import { AUDIT_OPERATIONS } from './tenants/audit.js';
import { ALL_TENANTS_OPERATIONS, TENANT_OPERATIONS } from './tenants/tenants.js';
import { TOOL_OPERATIONS } from './tools.js';
import { USAGE_OPERATIONS } from './usage.js';

const PLATFORM_OPERATIONS = {
  health: get('/health', PUBLIC, 'Health of the platform', { response: HealthResponse, query: HealthQuery }),
  agentCard: get(
    '/.well-known/agent-card.json',
    { access: 'optional', agents: 'open' },
    'The A2A agent card: 0.3, or 1.0 by A2A-Version; with a token, the skills of its fleet',
    { response: AgentCardResponse, statuses: [304, 401, 500, 503], a2aVersions: true },
  ),
  agentTypeCard: get(
    '/a2a/:agent_type/.well-known/agent-card.json',
    { access: 'optional', agents: 'open' },
    'The A2A agent card of an agent type: 0.3, or 1.0 by A2A-Version; with a token, the skills of its agents',
    { response: AgentCardResponse, statuses: [304, 401, 404, 500, 503], a2aVersions: true, ...EXTENSION },
  ),
  platformHealth: post('/platform/get_health', OPERATOR, 'The health of the platform with its nodes', {
    request: z.strictObject({}),
    response: PlatformHealth,
    ...EXTENSION,
  }),
  openapi: get('/openapi.json', PUBLIC, 'This description', { response: JsonObject, ...EXTENSION }),
};

/** All operations, in the order of the documentation. */
export const OPERATIONS = {
  ...AUTH_OPERATIONS,
  ...CREDENTIAL_OPERATIONS,
  ...SESSION_OPERATIONS,
  ...MESSAGE_OPERATIONS,
  ...APPROVAL_OPERATIONS,
  ...REQUEST_OPERATIONS,
  ...AGENT_OPERATIONS,
  ...TOOL_OPERATIONS,
  ...PLAN_OPERATIONS,
  ...POLICY_OPERATIONS,
  ...BACKTEST_OPERATIONS,
  ...GUARD_OPERATIONS,
  ...ALERT_OPERATIONS,
  ...DELIVERY_OPERATIONS,
  ...TELEMETRY_OPERATIONS,
  ...USAGE_OPERATIONS,
  ...ALL_TENANTS_OPERATIONS,
  ...TENANT_OPERATIONS,
  ...AUDIT_OPERATIONS,
  ...KNOWLEDGE_OPERATIONS,
  ...PLATFORM_OPERATIONS,
};

/** The tags of `/openapi.json` with their operations. */
export const TAGS = {
  Auth: AUTH_OPERATIONS,
  Credentials: CREDENTIAL_OPERATIONS,
  Sessions: SESSION_OPERATIONS,
  Messages: MESSAGE_OPERATIONS,
  Approvals: APPROVAL_OPERATIONS,
  Requests: REQUEST_OPERATIONS,
  Agents: AGENT_OPERATIONS,
  Tools: TOOL_OPERATIONS,
  Plans: PLAN_OPERATIONS,
  Policies: { ...POLICY_OPERATIONS, ...BACKTEST_OPERATIONS },
  Guards: GUARD_OPERATIONS,
  Alerts: ALERT_OPERATIONS,
  Webhooks: DELIVERY_OPERATIONS,
  Telemetry: { ...TELEMETRY_OPERATIONS, ...USAGE_OPERATIONS },
  Tenants: { ...ALL_TENANTS_OPERATIONS, ...TENANT_OPERATIONS },
  Audit: AUDIT_OPERATIONS,
  'Knowledge base': KNOWLEDGE_OPERATIONS,
  Platform: PLATFORM_OPERATIONS,
};
