import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Db, Tx } from '../../db/pool.js';
import { enforce } from '../../policy/enforce.js';
import { WebhookEvaluators } from '../../policy/evaluators/webhook.js';
import { PolicyEngine } from '../../policy/policy-engine.js';
import type { PolicyRequest } from '../../policy/policy-request.js';
import { beginPolicyChange } from '../../policy/policy-store.js';
import { PlatformError } from '../../runtime/errors.js';
import { createLogger } from '../../runtime/logger.js';
import { type ServedApi, serveApi } from '../api/served-api.js';
import { cleanUp } from '../setup/clean-up.js';
import { until } from '../setup/until.js';
import { policyFor } from './policy-fixture.js';

const log = createLogger({ level: 'silent' });
const REQUEST: PolicyRequest = { scope: 'tool', action: 'call', tool: 'files.read' };

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi();
});

/** The engine of another process, on this database. */
const nobody = () => Promise.reject(new Error('nobody is asked'));
function engineOn(db: Pick<Db, 'tenant' | 'systemCall'>, request: () => Promise<never> = nobody): PolicyEngine {
  const webhooks = new WebhookEvaluators({ request });
  return new PolicyEngine({ db, secrets: api.secrets, webhooks, log, readGuards: async () => null });
}

const decisionOf = async (engine: PolicyEngine, tenantId = api.tenantId) =>
  (await engine.decide(tenantId, REQUEST)).decision;

/** An engine that looks for changes, and has read the tenant's policies. */
async function watching(db: Pick<Db, 'tenant' | 'systemCall'> = api.db): Promise<PolicyEngine> {
  const engine = engineOn(db);
  engine.start();
  cleanUp(() => engine.stop());
  expect(await decisionOf(engine)).toBe('allow');
  return engine;
}

/** Stores a policy past the API: later than it would, or one that it would refuse. */
async function store(tx: Tx, policy_id: string, given: { decision: string; match?: object; evaluator?: object }) {
  const { decision, match = {}, evaluator = {} } = given;
  await beginPolicyChange(tx, api.tenantId);
  await tx.query(
    `INSERT INTO policies (tenant_id, policy_id, scope, name, decision, description, match, reason, approvers, evaluator, priority, enabled)
     VALUES ($1, $2, 'tool', 'stored', $3, '', $4, '', '{}', $5, 1, true)`,
    [api.tenantId, policy_id, decision, JSON.stringify(match), JSON.stringify(evaluator)],
  );
}

test('a change is in force in every process', async () => {
  const engines = [await watching(), await watching()];
  const inForce = (decision: string) =>
    until(async () => (await Promise.all(engines.map((one) => decisionOf(one)))).every((one) => one === decision));
  const { policy_id } = await policyFor(api.client, { scope: 'tool', decision: 'deny' });
  await inForce('deny');
  await api.client.post('/policies/update_policy', { policy_id, enabled: false });
  await inForce('allow');
  await api.client.post('/policies/update_policy', { policy_id, enabled: true });
  await inForce('deny');
  await api.client.post('/policies/delete_policy', { policy_id });
  await inForce('allow');
});

test('a change that a transaction commits late is not missed', async () => {
  const engine = await watching();
  const other = await api.otherTenant();
  expect(await decisionOf(engine, other)).toBe('allow');
  // It has its transaction id before that of the other tenant, and commits after it was seen.
  await api.db.tenant(api.tenantId, async (tx) => {
    await store(tx, 'pol_late', { decision: 'deny' });
    await policyFor(await api.clientOf(other, ['full']), { scope: 'tool', decision: 'deny' });
    await until(async () => (await decisionOf(engine, other)) === 'deny', { what: 'the other change' });
  });
  await until(async () => (await decisionOf(engine)) === 'deny', { what: 'the late change' });
  await api.client.post('/policies/delete_policy', { policy_id: 'pol_late' });
});

test('a process that cannot confirm what it knows denies, and decides again once it can', async () => {
  let isAway = false;
  const away = () => Promise.reject(new PlatformError('SERVICE_UNAVAILABLE', 'away'));
  const db: Pick<Db, 'tenant' | 'systemCall'> = {
    tenant: (tenantId, work) => (isAway ? away() : api.db.tenant(tenantId, work)),
    systemCall: (statement, values) => (isAway ? away() : api.db.systemCall(statement, values)),
  };
  vi.useFakeTimers({ toFake: ['performance'] });
  cleanUp(() => vi.useRealTimers());
  const engine = await watching(db);
  // What was read before the first look at the changes is read again after it.
  await until(() => engine.unconcerned.confirmedUntilMs > 0);
  expect(await decisionOf(engine)).toBe('allow');
  isAway = true;
  expect(await decisionOf(engine)).toBe('allow');
  vi.advanceTimersByTime(5_001);
  expect(await engine.decide(api.tenantId, REQUEST)).toMatchObject({ decision: 'deny', retryable: true });
  isAway = false;
  expect(await decisionOf(engine)).toBe('allow');
});

test('a tenant whose policies are not known yet is not decided about while they cannot be read', async () => {
  const engine = engineOn({ tenant: () => Promise.reject(new Error('away')), systemCall: api.db.systemCall });
  expect(await engine.decide(api.tenantId, REQUEST)).toMatchObject({ decision: 'deny', retryable: true });
});

describe('a policy that another release stored, and this one cannot read, decides as one whose evaluator failed', () => {
  afterEach(() => api.client.post('/policies/delete_policy', { policy_id: 'pol_stored' }));
  test.each<[string, Parameters<typeof store>[2]]>([
    ['an unknown operator', { decision: 'deny', match: { arguments: [{ path: 'a', op: 'like', value: 'x' }] } }],
    ['an unknown member of match', { decision: 'allow', match: { weekdays: ['monday'] } }],
    ['an unknown member of not', { decision: 'allow', match: { not: { weekdays: ['monday'] } } }],
    ['an unknown evaluator', { decision: 'allow', evaluator: { type: 'rego', expression: 'true' } }],
    ['an expression that is not valid any more', { decision: 'allow', evaluator: { type: 'cel', expression: '(' } }],
  ])('%s', async (_what, policy) => {
    await api.db.tenant(api.tenantId, (tx) => store(tx, 'pol_stored', policy));
    const verdict = await engineOn(api.db).decide(api.tenantId, REQUEST);
    expect(verdict).toMatchObject({ decision: 'deny', by: { policy_id: 'pol_stored' } });
  });
});

test('what cannot be asked of an evaluator for lack of room is refused as busy, not as forbidden', async () => {
  const evaluator = { type: 'webhook' as const, url: 'http://127.0.0.1:1/' };
  const { policy_id } = await policyFor(api.client, { scope: 'admission', decision: 'deny', evaluator });
  const policies = engineOn(api.db, () => new Promise<never>(() => undefined));
  const request: PolicyRequest = { scope: 'admission', action: 'register' };
  // More than may be under way and wait together.
  const outcomes = Array.from({ length: 300 }, () =>
    enforce({ db: api.db, policies }, api.tenantId, request).catch((error: unknown) => error),
  );
  expect(await Promise.race(outcomes)).toMatchObject({
    code: 'SERVICE_UNAVAILABLE',
    statusCode: 503,
    headers: { 'Retry-After': '1' },
  });
  // What one tenant waits for is no reason for another to wait.
  expect([api.tenantId, 'ten_other'].map((tenantId) => policies.isBusy(tenantId))).toEqual([true, false]);
  await api.client.post('/policies/delete_policy', { policy_id });
});
