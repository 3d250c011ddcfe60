import { WatchRound } from '../../agents/watch-round.js';
import type { MessageSendParams } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import type { Db } from '../../db/pool.js';
import { createOutbound } from '../../http/outbound.js';
import type { MessageCore } from '../../messages/core.js';
import { NO_NODES } from '../../messages/dispatch/nodes.js';
import { ChangeReader } from '../../messages/stream/change-reader.js';
import { LocalChanges } from '../../messages/stream/local-changes.js';
import { MemoryBus } from '../../messages/stream/memory-bus.js';
import { WebhookEvaluators } from '../../policy/evaluators/webhook.js';
import { createGuardReader } from '../../policy/guards/settings.js';
import { PolicyEngine } from '../../policy/policy-engine.js';
import { DEFAULT_CLOCKS } from '../../runtime/clocks.js';
import { newId } from '../../runtime/ids.js';
import { createLogger } from '../../runtime/logger.js';
import { createSecrets } from '../../runtime/secrets.js';
import { cleanUp } from './clean-up.js';
import type { FreshDatabase } from './database.js';

interface CoreSettings {
  limits?: Partial<MessageCore['limits']>;
  clocks?: Partial<MessageCore['clocks']>;
}

/** What the domains share, on a test's database. No workflow is started, and no limit is met by chance. */
export function messageCore(
  db: Db,
  changes: Omit<Partial<MessageCore>, 'limits' | 'clocks'> & CoreSettings = {},
): MessageCore {
  const log = createLogger({ level: 'silent' });
  const bus = new MemoryBus({ log });
  cleanUp(() => bus.close());
  const limits = {
    queueWaitMs: 60_000,
    watchAfterMs: 10_000,
    inputExpiryMs: 3_600_000,
    tenantMaxInFlight: 1_000,
    tenantMaxQueued: 10_000,
    tenantMaxWaiting: 1_000,
    decidesBySignal: false,
    idempotencyHours: 168,
  };
  const workflowStarter = { message: () => undefined, session: () => undefined };
  const policies = changes.policies ?? policyEngine(db);
  const settings = { limits: { ...limits, ...changes.limits }, clocks: { ...DEFAULT_CLOCKS, ...changes.clocks } };
  const advance = () => undefined;
  const looks = new ChangeReader(db, settings.clocks);
  const local = new LocalChanges();
  return {
    db,
    bus,
    local,
    changes: looks,
    log,
    workflowStarter,
    advance,
    nodes: NO_NODES,
    ...changes,
    policies,
    ...settings,
  };
}

/** What tests seal with where they start no platform. */
export const TEST_SECRETS = createSecrets(Buffer.alloc(32, 7).toString('base64'));

/** The policies of tenants, without the feed of changes: what was read counts for five seconds, or until `changed`. */
function policyEngine(db: Db): PolicyEngine {
  const log = createLogger({ level: 'silent' });
  const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
  cleanUp(() => outbound.close());
  const webhooks = new WebhookEvaluators(outbound);
  return new PolicyEngine({ db, secrets: TEST_SECRETS, webhooks, log, readGuards: createGuardReader(['127.0.0.0/8']) });
}

/** A round of the agent watch, outside of its activity. */
export function watchRound(): WatchRound {
  const log = createLogger({ level: 'silent' });
  return new WatchRound({ log, beat: () => undefined, signal: new AbortController().signal });
}

/** Who calls with a credential of this tenant. */
export function callerOf(tenantId: string): Caller {
  const claims = { credential_id: 'cred_1', sub: 'cred_1', agent_type: 'credential', iat: 0, exp: 0 };
  return { ...claims, tenant_id: tenantId, scopes: ['full'] };
}

/** A message of a user with one text. */
export function textMessage(text = 'hello', fields: Partial<MessageSendParams['message']> = {}) {
  const message: MessageSendParams['message'] = {
    ...{ kind: 'message', role: 'user', messageId: newId('req'), parts: [{ kind: 'text', text }] },
    ...fields,
  };
  return message;
}

/** Puts a tenant on the record. @returns its id */
export async function insertTenant(database: FreshDatabase, tenantId = newId('ten')): Promise<string> {
  await database.query("INSERT INTO tenants (tenant_id, name) VALUES ($1, 'test')", [tenantId]);
  return tenantId;
}

/** Puts an agent on the record: a connected one without a bound on its sessions, where its columns say nothing else. */
export async function insertAgent(
  database: FreshDatabase,
  agent: { tenant_id: string; instance_id: string; [column: string]: unknown },
): Promise<void> {
  const defaults = { agent_type: 'worker', status: 'available', max_concurrent_sessions: 0 };
  const row = { ...defaults, deployment_mode: agent.public_url ? 'hosted' : 'connected', ...agent };
  const places = Object.keys(row).map((_, index) => `$${index + 1}`);
  await database.query(`INSERT INTO agents (${Object.keys(row)}) VALUES (${places})`, Object.values(row));
}

/** Deletes every message of every tenant with all that belongs to it; one tenant and one mesh node are there then. */
export async function emptyRecord(database: FreshDatabase, tenantId: string, meshId: string): Promise<void> {
  const ofMessages = [
    'tool_grants',
    'input_decisions',
    'input_requests',
    'dispatches',
    'messages',
    'running_messages',
    'idempotency_keys',
  ];
  const others = ['session_agents', 'sessions', 'event_groups', 'agents', 'mesh_nodes', 'tenants'];
  for (const table of [...ofMessages, ...others]) await database.query(`DELETE FROM ${table}`);
  await insertTenant(database, tenantId);
  await database.query('INSERT INTO mesh_nodes (mesh_id) VALUES ($1)', [meshId]);
}
