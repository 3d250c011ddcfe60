import { readFileSync } from 'node:fs';
import { type Authenticator, createAuthenticator } from '../auth/authenticator.js';
import { credentialStatus } from '../auth/credentials.js';
import { checkSecretKey } from '../auth/secret-check.js';
import { loadSigningKeys } from '../auth/signing-keys.js';
import { createTokens, type Tokens } from '../auth/tokens.js';
import { migrate } from '../db/migrate.js';
import { type Db, openDb } from '../db/pool.js';
import { createPushConfigs, type PushConfigs } from '../deliveries/push-configs.js';
import { PushRelay } from '../deliveries/push-relay.js';
import { createOutbound, type Outbound } from '../http/outbound.js';
import { type AcceptDeps, acceptDeps } from '../messages/accept/accept.js';
import { sessionDeps } from '../messages/cancel.js';
import type { MessageCore } from '../messages/core.js';
import { createDispatches } from '../messages/dispatch/dispatch-store.js';
import type { Dispatches } from '../messages/dispatch/dispatches.js';
import type { ChunkBus } from '../messages/stream/bus.js';
import { createMemoryBus } from '../messages/stream/memory-bus.js';
import { createRedisBus } from '../messages/stream/redis-bus.js';
import { connectTemporal, type TemporalLink } from '../messages/supervise/temporal-link.js';
import { createWorkflowStarter, type RunningWorkflowStarter } from '../messages/supervise/workflow-starter.js';
import type { Config } from '../runtime/config.js';
import type { Logger } from '../runtime/logger.js';
import { createSecrets, type Secrets } from '../runtime/secrets.js';
import { createSessions, type Sessions } from '../sessions/sessions.js';
import type { Infrastructure } from './infrastructure.js';
import type { RunOptions } from './roles.js';

const LOOPBACK = ['127.0.0.0/8', '::1/128'];

/** Whether only this machine can reach the API. Then agents on this machine may be registered by their loopback address. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Shared services of all roles. */
export interface Services {
  config: Config;
  log: Logger;
  version: string;
  db: Db;
  secrets: Secrets;
  tokens: Tokens;
  authenticator: Authenticator;
  outbound: Outbound;
  bus: ChunkBus;
  temporal: TemporalLink;
  workflowStarter: RunningWorkflowStarter;
  core: MessageCore;
  messages: AcceptDeps;
  dispatches: Dispatches;
  sessions: Sessions;
  pushConfigs: PushConfigs;
  /** Started only by the worker role. */
  pushRelay: PushRelay;
  /** Closes everything that `createServices` opened, last first. */
  close(): Promise<void>;
}

/** The version in package.json, which the build copies to `dist/`. */
function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}

function createBus(config: Config, options: RunOptions, log: Logger): ChunkBus {
  if (config.REDIS_URL) return createRedisBus({ url: config.REDIS_URL, log });
  if (options.roles.size < 3)
    throw new Error('Roles in separate processes need REDIS_URL, which carries output between them.');
  return createMemoryBus({ log });
}

async function openDatabase(
  infrastructure: Infrastructure,
  config: Config,
  log: Logger,
): Promise<{ db: Db; secrets: Secrets }> {
  const { applied } = await migrate(infrastructure.databaseUrl, log);
  if (applied.length > 0) log.info({ applied }, 'migrations applied');
  const db = openDb({ url: infrastructure.databaseUrl, max: config.DATABASE_POOL_MAX, log });
  const secrets = createSecrets(infrastructure.secretKey);
  try {
    await checkSecretKey(db, secrets);
  } catch (error) {
    await db.close();
    throw error;
  }
  return { db, secrets };
}

/**
 * Opens the shared services: migrated database, keys, Temporal client, bus, and the functions of `messages/`.
 * @param options.baseUrl issuer of the tokens; known once the API listens
 */
export async function createServices(options: {
  config: Config;
  run: RunOptions;
  infrastructure: Infrastructure;
  log: Logger;
  baseUrl: () => string;
}): Promise<Services> {
  const { config, run, infrastructure, log, baseUrl } = options;
  const bus = createBus(config, run, log);
  const { db, secrets } = await openDatabase(infrastructure, config, log);
  const temporal = await connectTemporal({
    connection: infrastructure.temporal,
    namespace: config.TEMPORAL_NAMESPACE,
    log,
  });
  const workflowStarter = createWorkflowStarter({ temporal, log });
  const limits = {
    queueWaitMs: config.QUEUE_WAIT_MS,
    inputExpiryMs: config.INPUT_EXPIRY_MS,
    tenantMaxInFlight: config.TENANT_MAX_IN_FLIGHT,
    tenantMaxWaiting: config.TENANT_MAX_WAITING,
    idempotencyHours: config.IDEMPOTENCY_TTL_HOURS,
  };
  const core: MessageCore = { db, bus, log, workflowStarter, limits };
  const tokens = createTokens({ loadKeys: () => loadSigningKeys(db, secrets), issuer: baseUrl });
  const authenticator = createAuthenticator({ tokens, lookup: (credentialId) => credentialStatus(db, credentialId) });
  const loopback = run.development && isLoopback(config.FLEET_HOST) ? LOOPBACK : [];
  const outbound = createOutbound({ allowCidrs: [...config.OUTBOUND_ALLOW_CIDRS, ...loopback], log });
  const pushRelay = new PushRelay(db, log, temporal);
  return {
    config,
    log,
    version: readVersion(),
    db,
    secrets,
    tokens,
    authenticator,
    outbound,
    bus,
    temporal,
    workflowStarter,
    core,
    messages: acceptDeps(core),
    dispatches: createDispatches(core),
    sessions: createSessions(sessionDeps(core)),
    pushConfigs: createPushConfigs({ db, secrets, outbound, expect: () => pushRelay.expect() }),
    pushRelay,
    close: async () => {
      await workflowStarter.settled();
      await outbound.close();
      await bus.close();
      await temporal.close();
      await db.close();
    },
  };
}
