import { readFileSync } from 'node:fs';
import { createAlertRules } from '../alerts/rules.js';
import { createAuthenticator, type TokenOf } from '../auth/authenticator.js';
import { credentialStatus } from '../auth/credentials.js';
import { checkSecretKey, createKeyWatch } from '../auth/secret-check.js';
import { loadSigningKeys } from '../auth/signing-keys.js';
import { createTokens } from '../auth/tokens.js';
import type { MessageInput } from '../contracts/workflows.js';
import { migrate } from '../db/migrate.js';
import { onceReachable } from '../db/once-reachable.js';
import { openDb } from '../db/pool.js';
import { newDeliveryCounts } from '../deliveries/attempts.js';
import type { ChannelClients } from '../deliveries/channels/clients.js';
import { DeliveryStarter } from '../deliveries/delivery-starter.js';
import { createPushConfigs } from '../deliveries/push/push-configs.js';
import { createOutbound } from '../http/outbound.js';
import { AgentCredentials } from '../mesh/hosted/agent-credentials.js';
import { acceptDeps } from '../messages/accept/accept.js';
import { sessionDeps } from '../messages/cancel.js';
import type { MessageCore } from '../messages/core.js';
import { createDispatches } from '../messages/dispatch/dispatch-store.js';
import { NO_NODES } from '../messages/dispatch/nodes.js';
import type { ChunkBus } from '../messages/stream/bus.js';
import { ChangeReader } from '../messages/stream/change-reader.js';
import { LocalChanges } from '../messages/stream/local-changes.js';
import { MemoryBus } from '../messages/stream/memory-bus.js';
import { RedisBus } from '../messages/stream/redis-bus.js';
import { Advancer } from '../messages/supervise/advance.js';
import { TemporalLink } from '../messages/supervise/temporal-link.js';
import { createWorkflowStarter } from '../messages/supervise/workflow-starter.js';
import { PlanStarter } from '../plans/plan-starter.js';
import { createPlans } from '../plans/plans.js';
import { WebhookEvaluators } from '../policy/evaluators/webhook.js';
import { GuardCatalog } from '../policy/guards/guard-catalog.js';
import { createGuardReader } from '../policy/guards/settings.js';
import { createPolicyCatalog } from '../policy/policy-catalog.js';
import { PolicyEngine } from '../policy/policy-engine.js';
import type { Config } from '../runtime/config.js';
import type { Logger } from '../runtime/logger.js';
import { createDataConverter } from '../runtime/payload-codec.js';
import { readSecretKeys } from '../runtime/secret-key.js';
import { createSecrets } from '../runtime/secrets.js';
import { createSessions } from '../sessions/sessions.js';
import { EventFeed } from '../telemetry/event-feed.js';
import { type SpanCounts, SpanWriter } from '../telemetry/traces/span-recorder.js';
import { Quotas } from '../usage/quotas.js';
import { createCatchUp } from '../usage/roll-up.js';
import { ToolUsage } from '../usage/tool-usage.js';
import type { Infrastructure } from './infrastructure.js';
import { openKnowledge } from './knowledge.js';
import type { RunOptions } from './roles/roles.js';
import { TemporalStart } from './temporal-start.js';

const LOOPBACK = ['127.0.0.0/8', '::1/128'];

/** Whether only this machine can reach the API. Then agents on this machine may be registered by their loopback address. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Shared services of all roles. */
export type Services = Awaited<ReturnType<typeof createServices>>;

/** The version in package.json, which the build copies to `dist/`. */
function readVersion(): string {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version;
}

function createBus(config: Config, options: RunOptions, log: Logger): ChunkBus {
  if (config.REDIS_URL) return new RedisBus({ url: config.REDIS_URL, log });
  // The knowledge role alone exchanges nothing with others but rows and workflows.
  const linked = (['api', 'mesh', 'worker'] as const).filter((role) => options.roles.has(role));
  if (linked.length === 1 || linked.length === 2)
    throw new Error('Roles in separate processes need REDIS_URL, which carries output between them.');
  return new MemoryBus({ log });
}

async function openDatabase(infrastructure: Infrastructure, config: Config, log: Logger) {
  const { applied } = await migrate(infrastructure.databaseUrl, log);
  if (applied.length > 0) log.info({ applied }, 'migrations applied');
  const { DATABASE_POOL_MAX: max, DATABASE_TIMEOUT_MS: timeoutMs } = config;
  const db = openDb({ url: infrastructure.databaseUrl, max, timeoutMs, log });
  const [key, ...others] = infrastructure.secretKeys;
  const secrets = createSecrets(key, others);
  await onceReachable(() => checkSecretKey(db, secrets), log).catch(async (error: unknown) => {
    await db.close();
    throw error;
  });
  return { db, secrets };
}

/**
 * Opens the shared services: migrated database, keys, Temporal client (not yet connected), bus, and the functions of `messages/`.
 * @param options.baseUrl issuer of the tokens; known once the API listens
 */
export async function createServices(options: {
  config: Config;
  run: RunOptions;
  infrastructure: Infrastructure;
  log: Logger;
  baseUrl: () => string;
}) {
  const { config, run, infrastructure, log, baseUrl } = options;
  const { FLEET_CLOCKS: clocks } = config;
  const bus = createBus(config, run, log);
  const { db, secrets } = await openDatabase(infrastructure, config, log);
  const keyWatch = createKeyWatch({
    db,
    secrets,
    log,
    readKeys: async () => (config.FLEET_SECRET_KEY ? [] : readSecretKeys(config.FLEET_DATA_DIR)),
  });
  const dataConverter = createDataConverter(secrets, config);
  const target = { options: infrastructure.temporal, namespace: config.TEMPORAL_NAMESPACE, dataConverter };
  const temporal = new TemporalLink(target, log);
  const temporalStart = new TemporalStart(temporal, target, log);
  const workflowStarter = createWorkflowStarter(temporal, log);
  const limits = {
    queueWaitMs: config.QUEUE_WAIT_MS,
    watchAfterMs: config.WATCH_AFTER_MS,
    inputExpiryMs: config.INPUT_EXPIRY_MS,
    tenantMaxInFlight: config.TENANT_MAX_IN_FLIGHT,
    tenantMaxQueued: config.TENANT_MAX_QUEUED,
    tenantMaxWaiting: config.TENANT_MAX_WAITING,
    decidesBySignal: config.FLEET_TEMPORAL_RESOLVE === 'on',
    idempotencyHours: config.IDEMPOTENCY_TTL_HOURS,
  };
  const tokens = createTokens({ loadKeys: () => loadSigningKeys(db, secrets), issuer: baseUrl, log });
  const lookup = (credentialId: string, token: TokenOf) => credentialStatus(db, credentialId, token);
  const authenticator = createAuthenticator({ tokens, lookup, clocks });
  const loopback = run.development && isLoopback(config.FLEET_HOST) ? LOOPBACK : [];
  const allowCidrs = [...config.OUTBOUND_ALLOW_CIDRS, ...loopback];
  const outbound = createOutbound({ allowCidrs, log });
  const webhooks = new WebhookEvaluators(outbound);
  const policies = new PolicyEngine({ db, secrets, webhooks, log, readGuards: createGuardReader(allowCidrs) });
  policies.start();
  keyWatch.start();
  const advancer = new Advancer(() => core);
  const advance = (ref: MessageInput) => advancer.advance(ref);
  const local = new LocalChanges();
  const changes = new ChangeReader(db, clocks);
  const core: MessageCore = {
    db,
    bus,
    local,
    changes,
    log,
    workflowStarter,
    advance,
    nodes: NO_NODES,
    policies,
    clocks,
    limits,
  };
  const channelClients: ChannelClients = {
    outbound,
    slackApiUrl: config.SLACK_API_URL.replace(/\/+$/, ''),
    email: { smtpUrl: config.SMTP_URL, from: config.SMTP_FROM },
  };
  const { roles } = run;
  const { databaseUrl } = infrastructure;
  const opened = await openKnowledge({ config, roles, databaseUrl, db, log, outbound, temporal });
  const deliveryStarter = new DeliveryStarter(db, log, temporal);
  const planStarter = new PlanStarter(db, log, temporal);
  const plans = createPlans({
    db,
    policies,
    approvalMs: config.INPUT_EXPIRY_MS,
    wakesExpected: () => planStarter.expect(),
  });
  const eventFeed = new EventFeed(db, log);
  const catchUpUsage = createCatchUp(db);
  const spanCounts: SpanCounts = { exported: 0, refused: 0, dropped: 0, unreadable: 0 };
  const quotas = new Quotas({ db, log, catchUpUsage });
  return {
    config,
    log,
    version: readVersion(),
    db,
    secrets,
    tokens,
    authenticator,
    outbound,
    credentials: new AgentCredentials({ outbound, secrets }),
    bus,
    temporal,
    temporalStart,
    dataConverter,
    core,
    messages: acceptDeps(core, quotas),
    quotas,
    catchUpUsage,
    toolUsage: new ToolUsage(db, log),
    spans: new SpanWriter(db, log, config.FLEET_TRACE_SAMPLE_RATIO, spanCounts),
    spanCounts,
    dispatches: createDispatches(core),
    sessions: createSessions(sessionDeps(core)),
    pushConfigs: createPushConfigs({ db, secrets, outbound, expect: () => deliveryStarter.expect() }),
    guardCatalog: new GuardCatalog(db, (tenantId) => policies.changed(tenantId)),
    policyCatalog: createPolicyCatalog({ db, secrets, outbound, engine: policies }),
    alertRules: createAlertRules({ db, secrets, outbound, slackApiUrl: channelClients.slackApiUrl }),
    deliveryCounts: newDeliveryCounts(),
    channelClients,
    eventFeed,
    embedder: opened.embedder,
    knowledge: opened.knowledge,
    /** Takes documents in where this process has the knowledge role. */
    jobRunner: opened.runner,
    plans,
    /** Started only by the worker role, both. */
    deliveryStarter,
    planStarter,
    /** Closes everything that was opened here, last first. */
    close: async (): Promise<void> => {
      await advancer.settled();
      await workflowStarter.settled();
      await policies.stop();
      await keyWatch.stop();
      await eventFeed.stop();
      await opened.close();
      await outbound.close();
      await bus.close();
      await temporal.close();
      await db.close();
    },
  };
}
