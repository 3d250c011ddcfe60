import type { Redis } from 'ioredis';
import type { AgentRef, AgentRow } from '../agents/agent-row.js';
import type { AlertRules } from '../alerts/rules.js';
import type { Authenticator } from '../auth/authenticator.js';
import type { TokenIssuer } from '../auth/tokens.js';
import type { HealthResponse } from '../contracts/api/health.js';
import type { Db } from '../db/pool.js';
import type { ChannelClients } from '../deliveries/channels/clients.js';
import type { PushConfigs } from '../deliveries/push/push-configs.js';
import type { Outbound } from '../http/outbound.js';
import type { Knowledge } from '../knowledge/knowledge.js';
import type { AcceptDeps } from '../messages/accept/accept.js';
import type { Plans } from '../plans/plans.js';
import type { GuardCatalog } from '../policy/guards/guard-catalog.js';
import type { PolicyCatalog } from '../policy/policy-catalog.js';
import type { PolicyEngine } from '../policy/policy-engine.js';
import type { Clocks } from '../runtime/clocks.js';
import type { Config } from '../runtime/config.js';
import type { Logger } from '../runtime/logger.js';
import type { Secrets } from '../runtime/secrets.js';
import type { Sessions } from '../sessions/sessions.js';
import type { EventFeed } from '../telemetry/event-feed.js';
import type { ToolCallService } from '../tools/tool-call-service.js';
import type { Quotas } from '../usage/quotas.js';
import type { CatchUp } from '../usage/roll-up.js';
import type { HttpCounts } from './plugins/http-counts.js';

/** What the HTTP API needs from the platform. */
export interface ApiDeps {
  config: Pick<
    Config,
    | 'SEND_WAIT_MS'
    | 'RATE_LIMIT_PER_MINUTE'
    | 'TRUST_PROXY_CIDRS'
    | 'CORS_ORIGINS'
    | 'OPEN_CALLS_PER_TOKEN'
    | 'OPEN_CALLS_PER_TENANT'
    | 'OPEN_CALLS_MAX'
    | 'FLEET_TEMPORAL_CODEC_KEY'
    | 'OIDC_ISSUER'
    | 'OIDC_CLIENT_ID'
    | 'OIDC_CLIENT_SECRET'
    | 'OIDC_CLAIM_ROLES'
    | 'OIDC_ROLES'
  >;
  db: Db;
  log: Logger;
  authenticator: Authenticator;
  tokens: TokenIssuer;
  secrets: Secrets;
  messages: AcceptDeps;
  pushConfigs: PushConfigs;
  policies: PolicyEngine;
  policyCatalog: PolicyCatalog;
  guardCatalog: GuardCatalog;
  alertRules: AlertRules;
  channelClients: ChannelClients;
  /** Called when a delivery was queued. */
  deliveriesExpected: () => void;
  sessions: Sessions;
  quotas: Pick<Quotas, 'changed'>;
  catchUpUsage: CatchUp;
  plans: Plans;
  tools: ToolCallService;
  knowledge: Knowledge;
  eventFeed: EventFeed;
  /** Called when a hosted agent may have room: queued messages are routed at once. */
  fill: (agent: AgentRef) => void;
  /** Called after agents were deregistered, with their rows as they were: closes their sockets. */
  agentsDeregistered: (rows: AgentRow[]) => void;
  outbound: Pick<Outbound, 'request' | 'checkUrl'>;
  /** Counts rate limits over all nodes; null: each process counts by itself. */
  redis: Redis | null;
  health: () => Promise<HealthResponse>;
  /** Filled with the counts of each route. */
  counts: HttpCounts;
  version: string;
  /** Functions, because addresses are known only once the servers listen. Without a trailing slash. */
  baseUrl: () => string;
  meshUrl: () => string;
  /** Aborts when the process begins to stop: streams end, and blocking sends answer with the task as it is. */
  draining: AbortSignal;
  /** Aborted before that, when the process gets its signal: everything is still answered, and connections are not kept. */
  stopping: AbortSignal;
  clocks: Pick<Clocks, 'credentialCheckMs'>;
  /** Folder of the files of `/docs`; `docs/` beside this file by default. */
  docsFolder?: string;
  /** Folder of the console's page; `console/` of the build by default. */
  consoleFolder?: string;
  /** Time for a whole request to arrive; 30000 by default. */
  requestTimeoutMs?: number;
}
