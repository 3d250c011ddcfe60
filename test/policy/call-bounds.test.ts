// @module-tag once
import { afterEach, beforeAll, expect, test } from 'vitest';
import { GetPoliciesResponse, type Policy, PolicyResponse } from '../../contracts/api/policies/policies.js';
import type { Db } from '../../db/pool.js';
import { WebhookEvaluators } from '../../policy/evaluators/webhook.js';
import { PolicyEngine } from '../../policy/policy-engine.js';
import { countAllowedCall } from '../../policy/policy-store.js';
import { PlatformError } from '../../runtime/errors.js';
import { createLogger } from '../../runtime/logger.js';
import type { ToolRequest } from '../../tools/call-context.js';
import { ToolPolicy } from '../../tools/tool-policy.js';
import { type ServedApi, serveApi } from '../api/served-api.js';
import { cleanUp } from '../setup/clean-up.js';
import { until } from '../setup/until.js';
import { deletePolicies, policyFor, tested } from './policy-fixture.js';

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi();
});
afterEach(() => deletePolicies(api.client));

const bounded = (max_calls: number, fields: object = {}): Promise<Policy> =>
  policyFor(api.client, { scope: 'tool', decision: 'allow', match: { tools: ['files.*'] }, max_calls, ...fields });
const asking = () => policyFor(api.client, { scope: 'tool', decision: 'require_approval', priority: 200 });
const read = async ({ policy_id }: Policy) =>
  (await api.client.ok('/policies/get_policy_by_id', { policy_id }, PolicyResponse)).policy;
const update = async ({ policy_id }: Policy, change: object) =>
  (await api.client.ok('/policies/update_policy', { policy_id, ...change }, PolicyResponse)).policy;
const counts = () => api.database.column('SELECT calls_allowed FROM policy_calls');

const request = (): ToolRequest => ({
  caller: { tenant_id: api.tenantId, agent_type: 'writer', key: 'writer' },
  payload: { tool: 'files.read', arguments: {}, target: {} },
  parent: undefined,
  signal: new AbortController().signal,
});

/** The policies as another process has them, which looks for changes once it is started. */
function processOf(db: Db = api.db) {
  const log = createLogger({ level: 'silent' });
  const webhooks = new WebhookEvaluators({ request: () => Promise.reject(new Error('nobody is asked')) });
  const engine = new PolicyEngine({ db: api.db, secrets: api.secrets, webhooks, log, readGuards: async () => null });
  const policy = new ToolPolicy(db, engine);
  const call = async () => (await policy.decide(request(), [])).decision;
  return { engine, policy, call, again: async () => (await policy.decideAgain(request(), [])).decision };
}

test('of concurrent calls in several processes exactly as many are allowed, and the next policy decides about the others', async () => {
  const policy = await bounded(20);
  await asking();
  const processes = [processOf(), processOf(), processOf()];
  const decisions = await Promise.all(Array.from({ length: 51 }, (_, n) => processes[n % 3]?.call()));
  expect(decisions.filter((decision) => decision === 'allow')).toHaveLength(20);
  expect(decisions.filter((decision) => decision === 'require_approval')).toHaveLength(31);
  expect(await read(policy)).toMatchObject({ max_calls: 20, calls_allowed: 20 });
});

test('of two transactions that count at once the second waits for the first, and gets what it leaves', async () => {
  const { policy_id } = await bounded(1);
  const second = await api.db.tenant(api.tenantId, async (tx) => {
    await tx.query('SELECT count_allowed_call($1, $2)', [api.tenantId, policy_id]);
    const waiting = countAllowedCall(api.db, api.tenantId, policy_id);
    const locked =
      "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%count_allowed_call%'";
    await until(async () => (await api.database.query(locked)).length > 0, { what: 'the second to wait' });
    return { waiting };
  });
  expect(await second.waiting).toBe(false);
  expect(await counts()).toEqual([1]);
});

test('a call that cannot be counted is not allowed', async () => {
  await bounded(5);
  const away = () => Promise.reject(new PlatformError('SERVICE_UNAVAILABLE', 'away'));
  await expect(processOf({ ...api.db, call: away }).call()).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
});

test('a policy without a bound costs no statement', async () => {
  await bounded(5, { max_calls: null });
  const { policy } = processOf();
  await policy.decide(request(), []);
  expect(policy.decide(request(), [])).not.toBeInstanceOf(Promise);
});

test('a bound that is used up has effect on what is not counted too, in every process', async () => {
  const policy = await bounded(1);
  await policyFor(api.client, { scope: 'tool', decision: 'deny', priority: 200 });
  const [here, there] = [processOf(), processOf()];
  there.engine.start();
  cleanUp(() => there.engine.stop());
  // A call that a person has approved is not counted.
  for (const _ of [1, 2]) expect(await there.again()).toBe('allow');
  expect(await read(policy)).toMatchObject({ calls_allowed: 0 });
  expect(await here.call()).toBe('allow');
  await until(async () => (await there.again()) === 'deny', { what: 'the other process to hear of it' });
});

test('what is read says how many calls were allowed, in a list too, and a change of the bound keeps the count', async () => {
  const policy = await bounded(2);
  expect(policy).toMatchObject({ max_calls: 2, calls_allowed: 0 });
  await asking();
  const { call } = processOf();
  for (const decision of ['allow', 'allow', 'require_approval']) expect(await call()).toBe(decision);
  const { policies } = await api.client.ok('/policies/get_policies', { scope: 'tool' }, GetPoliciesResponse);
  expect(policies.map(({ calls_allowed }) => calls_allowed)).toEqual([undefined, 2]);
  expect(await update(policy, { max_calls: 3 })).toMatchObject({ max_calls: 3, calls_allowed: 2 });
  const later = processOf();
  for (const decision of ['allow', 'require_approval']) expect(await later.call()).toBe(decision);
  const unbounded = await update(policy, { max_calls: null });
  expect([unbounded.max_calls, unbounded.calls_allowed]).toEqual([undefined, undefined]);
  for (const _ of [1, 2]) expect(await processOf().call()).toBe('allow');
  expect(await update(policy, { max_calls: 2 })).toMatchObject({ calls_allowed: 3 });
  expect(await processOf().call()).toBe('require_approval');
});

test('a test counts nothing, and says that the calls are used up', async () => {
  const policy = await bounded(1, { name: 'once' });
  const two = await bounded(2, { name: 'twice', priority: 150 });
  for (const _ of [1, 2]) expect(await tested(api.client)).toMatchObject({ policy_id: policy.policy_id });
  const { call } = processOf();
  for (const _ of [1, 2, 3]) await call();
  expect(await tested(api.client)).toMatchObject({
    decision: 'allow',
    matched: false,
    trace: [
      { name: 'once', outcome: 'not_matched', explanation: 'It has allowed its one call.' },
      { name: 'twice', outcome: 'not_matched', explanation: 'It has allowed its 2 calls.' },
    ],
  });
  expect(await read(two)).toMatchObject({ calls_allowed: 2 });
});

test('the count goes with its policy', async () => {
  const policy = await bounded(5);
  await processOf().call();
  expect(await counts()).toEqual([1]);
  await api.client.post('/policies/delete_policy', { policy_id: policy.policy_id });
  expect(await counts()).toEqual([]);
});

test.each<[string, object]>([
  ['a policy that denies', { decision: 'deny' }],
  ['a policy about messages', { scope: 'admission' }],
])('%s has no bound', async (_what, fields) => {
  const policy = { name: 'bounded', scope: 'tool', decision: 'allow', max_calls: 5, ...fields };
  const refused = await api.client.post('/policies/create_policy', policy);
  expect(refused).toMatchObject({ status: 400, body: { code: 'BAD_REQUEST' } });
  expect(JSON.stringify(refused.body)).toContain('Leave it out, or set it to null.');
  expect(await api.client.failure('/policies/backtest', { policy })).toBe('400 BAD_REQUEST');
});

test.each([0, 1_000_001, 1.5, '5'])('%j is no bound', async (max_calls) => {
  const policy = { name: 'bounded', scope: 'tool', decision: 'allow', max_calls };
  expect(await api.client.failure('/policies/create_policy', policy)).toBe('400 BAD_REQUEST');
});

test('a policy with a bound cannot become one that has none', async () => {
  const { policy_id } = await bounded(5);
  expect(await api.client.failure('/policies/update_policy', { policy_id, decision: 'deny' })).toBe('400 BAD_REQUEST');
  expect(await update({ policy_id } as Policy, { decision: 'deny', max_calls: null })).toMatchObject({
    decision: 'deny',
  });
});
