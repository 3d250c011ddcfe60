import { setMaxListeners } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { createAlertRules } from '../../alerts/rules.js';
import { ApiShutdown } from '../../api/api-shutdown.js';
import { buildApi } from '../../api/app.js';
import { createAuthenticator } from '../../auth/authenticator.js';
import { createCredential, credentialStatus } from '../../auth/credentials.js';
import { loadSigningKeys } from '../../auth/signing-keys.js';
import { createTenant } from '../../auth/tenants.js';
import { createTokens } from '../../auth/tokens.js';
import { GetTokenResponse } from '../../contracts/api/auth.js';
import type { HealthResponse } from '../../contracts/api/health.js';
import type { Scope } from '../../contracts/primitives.js';
import { openDb } from '../../db/pool.js';
import { createPushConfigs } from '../../deliveries/push/push-configs.js';
import { createOutbound } from '../../http/outbound.js';
import type { Embedder } from '../../knowledge/embedder.js';
import { acceptDeps } from '../../messages/accept/accept.js';
import { sessionDeps } from '../../messages/cancel.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import { createPlans } from '../../plans/plans.js';
import { GuardCatalog } from '../../policy/guards/guard-catalog.js';
import { createPolicyCatalog } from '../../policy/policy-catalog.js';
import { type Clocks, DEFAULT_CLOCKS } from '../../runtime/clocks.js';
import type { Config } from '../../runtime/config.js';
import { createLogger } from '../../runtime/logger.js';
import { createSecrets } from '../../runtime/secrets.js';
import { createSessions } from '../../sessions/sessions.js';
import { EventFeed } from '../../telemetry/event-feed.js';
import { createEventSequencer } from '../../telemetry/event-sequencer.js';
import { ToolCallService } from '../../tools/tool-call-service.js';
import { createLocalLink } from '../../tools/tool-link.js';
import { Quotas } from '../../usage/quotas.js';
import { createCatchUp } from '../../usage/roll-up.js';
import { testAuthor } from '../setup/author.js';
import { cleanUp } from '../setup/clean-up.js';
import { messageCore } from '../setup/core.js';
import { type FreshDatabase, freshDatabase } from '../setup/database.js';
import { knowledgeOf } from '../setup/knowledge.js';
import { ApiClient } from '../setup/platform/api-client.js';
import { toolCalls } from '../setup/tools.js';
import { until } from '../setup/until.js';

/** Longer than any call that a test leaves behind. */
const CLOSE_GRACE_MS = 30_000;
const KEY = Buffer.alloc(32, 7).toString('base64');

export interface ServedApiOptions {
  requestTimeoutMs?: number;
  sendWaitMs?: number;
  openCallsPerToken?: number;
  ratePerMinute?: number;
  trustProxyCidrs?: string[];
  corsOrigins?: string[];
  redis?: Redis;
  tenantMaxInFlight?: number;
  tenantMaxQueued?: number;
  tenantMaxWaiting?: number;
  /** Of knowledge bases; none when absent. */
  embedder?: Embedder;
  /** Events get their positions, as with the worker role. */
  sequencer?: boolean;
  /** Another node of this API: the same database. */
  beside?: { database: FreshDatabase };
  /** What `/health` finds; all is well where nothing is said. */
  checks?: Partial<HealthResponse['checks']>;
  clocks?: Partial<Clocks>;
  /** A provider of OpenID Connect. */
  oidc?: Partial<Pick<Config, 'OIDC_ISSUER' | 'OIDC_CLIENT_ID' | 'OIDC_CLIENT_SECRET' | 'OIDC_ROLES'>>;
}

export type ServedApi = Awaited<ReturnType<typeof serveApi>>;

/**
 * The HTTP face on a port and a database of its own, closed after the running test or the file. There is no worker: messages that are
 * accepted stay as they are until the test moves them by `core`.
 */
export async function serveApi(options: ServedApiOptions = {}) {
  const database = options.beside?.database ?? (await freshDatabase());
  const db = options.beside ? openDb({ url: database.url, log: createLogger({ level: 'error' }) }) : database.db();
  if (options.beside) cleanUp(() => db.close());
  const secrets = createSecrets(KEY);
  const tokens = createTokens({ loadKeys: () => loadSigningKeys(db, secrets), log: createLogger({ level: 'error' }) });
  const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
  cleanUp(() => outbound.close());
  const clocks = { ...DEFAULT_CLOCKS, ...options.clocks };
  const draining = new AbortController();
  setMaxListeners(0, draining.signal);
  const { tenantMaxInFlight = 50, tenantMaxQueued, tenantMaxWaiting } = options;
  const core = messageCore(db, {
    clocks,
    limits: {
      tenantMaxInFlight,
      ...(tenantMaxQueued && { tenantMaxQueued }),
      ...(tenantMaxWaiting && { tenantMaxWaiting }),
    },
  });
  const { bus, log } = core;
  const eventFeed = new EventFeed(db, log);
  cleanUp(() => eventFeed.stop());
  if (options.sequencer) {
    const sequencer = createEventSequencer(db, log, () => eventFeed.wake());
    sequencer.start();
    cleanUp(() => sequencer.stop());
  }
  const catchUpUsage = createCatchUp(db);
  const quotas = new Quotas({ db, log, catchUpUsage });
  await quotas.start();
  cleanUp(() => quotas.stop());
  const knowledge = await knowledgeOf(database, outbound, options.embedder);
  let baseUrl = '';
  const messages = acceptDeps(core, quotas);
  const approvalMs = core.limits.inputExpiryMs;
  const plans = createPlans({ db, policies: core.policies, approvalMs, wakesExpected: () => undefined });
  const app = buildApi({
    config: {
      SEND_WAIT_MS: options.sendWaitMs ?? 60_000,
      RATE_LIMIT_PER_MINUTE: options.ratePerMinute ?? 0,
      TRUST_PROXY_CIDRS: options.trustProxyCidrs ?? [],
      CORS_ORIGINS: options.corsOrigins ?? [],
      OPEN_CALLS_PER_TOKEN: options.openCallsPerToken ?? 1_000,
      OPEN_CALLS_PER_TENANT: 5_000,
      OPEN_CALLS_MAX: 20_000,
      OIDC_CLAIM_ROLES: 'groups',
      ...options.oidc,
    },
    db,
    log,
    authenticator: createAuthenticator({ tokens, lookup: (...of) => credentialStatus(db, ...of), clocks }),
    clocks,
    tokens,
    secrets,
    messages,
    quotas,
    catchUpUsage,
    pushConfigs: createPushConfigs({ db, secrets, outbound, expect: () => undefined }),
    guardCatalog: new GuardCatalog(db, (tenantId) => core.policies.changed(tenantId)),
    policies: core.policies,
    policyCatalog: createPolicyCatalog({ db, secrets, outbound, engine: core.policies }),
    alertRules: createAlertRules({ db, secrets, outbound, slackApiUrl: 'http://127.0.0.1:9' }),
    channelClients: {
      outbound,
      slackApiUrl: 'http://127.0.0.1:9',
      email: { smtpUrl: undefined, from: 'fleet@example.com' },
    },
    deliveriesExpected: () => undefined,
    sessions: createSessions(sessionDeps(core)),
    plans,
    tools: new ToolCallService({
      db,
      log,
      bus,
      dispatches: createDispatches(core),
      calls: toolCalls({ core, outbound, tokens, knowledge }),
      link: createLocalLink('alone'),
      meshId: 'alone',
    }),
    knowledge,
    eventFeed,
    redis: options.redis ?? null,
    docsFolder: join(import.meta.dirname, '..', '..', 'dist', 'api', 'docs'),
    consoleFolder: join(import.meta.dirname, '..', '..', 'dist', 'console'),
    fill: () => undefined,
    agentsDeregistered: () => undefined,
    outbound,
    counts: [],
    health: async () => {
      const checks = { database: 'ok', temporal: 'ok', mesh: 'ok', ...options.checks } as const;
      return { status: Object.values(checks).includes('down') ? 'degraded' : 'ok', version: '0.0.0', checks };
    },
    version: '0.0.0',
    baseUrl: () => baseUrl,
    meshUrl: () => 'https://mesh.example:8443',
    draining: draining.signal,
    stopping: draining.signal,
    ...(options.requestTimeoutMs !== undefined && { requestTimeoutMs: options.requestTimeoutMs }),
  });
  const shutdown = new ApiShutdown(app, draining);
  cleanUp(() => shutdown.close(CLOSE_GRACE_MS));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  baseUrl = `http://127.0.0.1:${port}`;

  const credentialOf = async (tenantId: string, scopes: Scope[], agent_types: string[] = []) => {
    const fields = { name: 'test', scopes, agent_types };
    const issued = await db.tenant(tenantId, (tx) => createCredential(tx, secrets, testAuthor(tenantId), fields));
    return { client_id: issued.credential.client_id, client_secret: issued.client_secret };
  };
  const clientOf = async (tenantId: string, scopes: Scope[], agentTypes: string[] = []) => {
    const credential = await credentialOf(tenantId, scopes, agentTypes);
    return new ApiClient({ devJson: () => ({ base_url: baseUrl, ...credential }) }, credential);
  };
  const clientWith = (token: string) => {
    const holder = new ApiClient({ devJson: () => ({ base_url: baseUrl, client_id: '', client_secret: '' }) });
    holder.token = async () => token;
    return holder;
  };
  /** A token of this credential, which stands for an agent of the type where one is given. */
  const tokenAs = async (
    credential: { client_id: string; client_secret: string; user_id?: string },
    agent_type?: string,
  ) => {
    const body = JSON.stringify({ ...credential, agent_type });
    const answer = await client.raw('/auth/get_token', body, { 'content-type': 'application/json' });
    return GetTokenResponse.parse(answer.body).token;
  };
  const newestMessage = async (): Promise<string> =>
    (await database.value<string>('SELECT message_id FROM messages ORDER BY message_id DESC LIMIT 1')) ?? '';
  const tenant = await createTenant(db, testAuthor(''), 'one');
  const client = await clientOf(tenant.tenant_id, ['full']);
  return {
    app,
    core,
    messages,
    plans,
    knowledge,
    database,
    db,
    tokens,
    secrets,
    port,
    draining,
    baseUrl,
    tenantId: tenant.tenant_id,
    /** Scope `full` of the first tenant. */
    client,
    credentialOf,
    clientOf,
    /** A client that has this token. */
    clientWith,
    tokenAs,
    /** A token of a new credential, which stands for an agent of the type where one is given. */
    tokenOf: async (scopes: Scope[], agentType?: string, tenantId = tenant.tenant_id) =>
      tokenAs(await credentialOf(tenantId, scopes, agentType ? [agentType] : []), agentType),
    /** Looks at the newest message; the function that it gives waits for a newer one. */
    nextMessage: async () => {
      const before = await newestMessage();
      return () => until(async () => (await newestMessage()) !== before && newestMessage());
    },
    otherTenant: async () => (await createTenant(db, testAuthor(''), 'two')).tenant_id,
  };
}
