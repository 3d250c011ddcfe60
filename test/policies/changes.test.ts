import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Db } from '../../db/pool.js';
import { enforce } from '../../policy/enforce.js';
import { WebhookEvaluators } from '../../policy/evaluators/webhook.js';
import { createPolicyCatalog } from '../../policy/policy-catalog.js';
import { PolicyEngine } from '../../policy/policy-engine.js';
import type { PolicyRequest, Verdict } from '../../policy/policy-request.js';
import { beginPolicyChange } from '../../policy/policy-store.js';
import { PlatformError } from '../../runtime/errors.js';
import { createLogger } from '../../runtime/logger.js';
import { type ServedApi, serveApi } from '../api/served-api.js';
import { cleanUp } from '../setup/clean-up.js';
import { until } from '../setup/until.js';
import { policyFor } from './policy-fixture.js';

const log = createLogger({ level: 'silent' });
const REQUEST: PolicyRequest = { scope: 'tool', action: 'call', tool: 'files.read' };
/** Less than a process trusts what it has read without asking again: a change that is seen sooner was announced. */
const ANNOUNCED_MS = 4_000;

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi();
});

/** The engine of another process, on this database. */
function engineOn(
  db: Pick<Db, 'tenant' | 'systemCall'>,
  request: () => Promise<never> = () => Promise.reject(new Error('nobody is asked')),
): PolicyEngine {
  const webhooks = new WebhookEvaluators({ request });
  return new PolicyEngine({ db, secrets: api.secrets, webhooks, log, readGuards: async () => null });
}

const decisionOf = async (engine: PolicyEngine) => (await engine.decide(api.tenantId, REQUEST)).decision;

test('a change is in force in every process', async () => {
  const [first, second] = [engineOn(api.db), engineOn(api.db)];
  for (const engine of [first, second]) {
    engine.start();
    cleanUp(() => engine.stop());
    expect(await decisionOf(engine)).toBe('allow');
  }
  const { policy_id } = await policyFor(api.client, { scope: 'tool', decision: 'deny' });
  const all = async (decision: string) => {
    const decisions = await Promise.all([first, second].map(decisionOf));
    return decisions.every((one) => one === decision) || Promise.reject(new Error(decisions.join()));
  };
  await until(() => all('deny'), { timeoutMs: ANNOUNCED_MS, what: 'the new policy everywhere' });
  await api.client.post('/policies/update_policy', { policy_id, enabled: false });
  await until(() => all('allow'), { timeoutMs: ANNOUNCED_MS, what: 'the change everywhere' });
  await api.client.post('/policies/update_policy', { policy_id, enabled: true });
  await until(() => all('deny'), { timeoutMs: ANNOUNCED_MS, what: 'the second change everywhere' });
  await api.client.post('/policies/delete_policy', { policy_id });
  await until(() => all('allow'), { timeoutMs: ANNOUNCED_MS, what: 'the deletion everywhere' });
});

test('a change that a transaction commits late is not missed', async () => {
  const engine = engineOn(api.db);
  engine.start();
  cleanUp(() => engine.stop());
  expect(await decisionOf(engine)).toBe('allow');
  const other = await api.otherTenant();
  const ofOther = async () => (await engine.decide(other, REQUEST)).decision;
  expect(await ofOther()).toBe('allow');
  const catalog = createPolicyCatalog({
    db: api.db,
    secrets: api.secrets,
    outbound: { checkUrl: () => undefined },
    engine: engineOn(api.db),
  });
  const policy = {
    scope: 'tool' as const,
    name: 'x',
    decision: 'deny' as const,
    description: '',
    match: {},
    reason: '',
    approvers: [],
    evaluator: {},
    priority: 1,
    enabled: true,
  };
  // It has its transaction id before that of the other tenant, and commits after it was seen.
  await api.db.tenant(api.tenantId, async (tx) => {
    await beginPolicyChange(tx, api.tenantId);
    await tx.query(
      `INSERT INTO policies (tenant_id, policy_id, scope, name, decision, description, match, reason, approvers, evaluator, priority, enabled)
       VALUES ($1, 'pol_late', 'tool', 'late', 'deny', '', '{}', '', '{}', '{}', 1, true)`,
      [api.tenantId],
    );
    await catalog.create(other, policy);
    await until(async () => (await ofOther()) === 'deny', { timeoutMs: ANNOUNCED_MS, what: 'the other change' });
  });
  await until(async () => (await decisionOf(engine)) === 'deny', { timeoutMs: ANNOUNCED_MS, what: 'the late change' });
  await api.client.post('/policies/delete_policy', { policy_id: 'pol_late' });
});

test('a process that cannot confirm what it knows denies, and decides again once it can', async () => {
  let isAway = false;
  const away = () => Promise.reject(new PlatformError('SERVICE_UNAVAILABLE', 'away'));
  const db: Pick<Db, 'tenant' | 'systemCall'> = {
    tenant: (tenantId, work) => (isAway ? away() : api.db.tenant(tenantId, work)),
    systemCall: (statement, values) => (isAway ? away() : api.db.systemCall(statement, values)),
  };
  const engine = engineOn(db);
  engine.start();
  cleanUp(() => engine.stop());
  // What was read before the first look at the changes is read again after it.
  await until(() => engine.unconcerned.confirmedUntilMs > 0);
  expect(await decisionOf(engine)).toBe('allow');
  isAway = true;
  expect(await decisionOf(engine)).toBe('allow');
  let verdict: Verdict | undefined;
  await until(async () => {
    verdict = await engine.decide(api.tenantId, REQUEST);
    return verdict.decision === 'deny';
  });
  expect(verdict).toMatchObject({ retryable: true });
  isAway = false;
  await until(async () => (await decisionOf(engine)) === 'allow');
});

test('a tenant whose policies are not known yet is not decided about while they cannot be read', async () => {
  const engine = engineOn({ tenant: () => Promise.reject(new Error('away')), systemCall: api.db.systemCall });
  expect(await engine.decide(api.tenantId, REQUEST)).toMatchObject({ decision: 'deny', retryable: true });
});

/** Stores a policy as another release might have, which the API of this one would refuse. */
async function stored(policy: { decision: string; match?: object; evaluator?: object }): Promise<void> {
  const { decision, match = {}, evaluator = {} } = policy;
  await api.db.tenant(api.tenantId, async (tx) => {
    await beginPolicyChange(tx, api.tenantId);
    await tx.query(
      `INSERT INTO policies (tenant_id, policy_id, scope, name, decision, description, match, reason, approvers, evaluator, priority, enabled)
       VALUES ($1, 'pol_stored', 'tool', 'stored', $2, '', $3, '', '{}', $4, 1, true)`,
      [api.tenantId, decision, JSON.stringify(match), JSON.stringify(evaluator)],
    );
  });
}

describe('a policy that another release stored, and this one cannot read, decides as one whose evaluator failed', () => {
  afterEach(() => api.client.post('/policies/delete_policy', { policy_id: 'pol_stored' }));
  test.each<[string, Parameters<typeof stored>[0]]>([
    ['an unknown operator', { decision: 'deny', match: { arguments: [{ path: 'a', op: 'like', value: 'x' }] } }],
    ['an unknown member of match', { decision: 'allow', match: { weekdays: ['monday'] } }],
    ['an unknown member of not', { decision: 'allow', match: { not: { weekdays: ['monday'] } } }],
    ['an unknown evaluator', { decision: 'allow', evaluator: { type: 'rego', expression: 'true' } }],
    ['an expression that is not valid any more', { decision: 'allow', evaluator: { type: 'cel', expression: '(' } }],
  ])('%s', async (_what, policy) => {
    await stored(policy);
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
