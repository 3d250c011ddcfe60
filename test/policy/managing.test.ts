import { afterEach, beforeAll, expect, test } from 'vitest';
import { GetPoliciesResponse, PolicyResponse } from '../../contracts/api/policies/policies.js';
import { type ServedApi, serveApi } from '../api/served-api.js';
import { deletePolicies, policyFor, tested } from './policy-fixture.js';

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi();
});
afterEach(() => deletePolicies(api.client));

const simple = { scope: 'tool' as const, decision: 'deny' as const };
const webhook = { type: 'webhook' as const, url: 'https://example.com/x', secret: 'hush' };

test('a policy is read as it was written, without its secret', async () => {
  const match = { tools: ['a'] };
  const made = await policyFor(api.client, { ...simple, match, approvers: ['x'], evaluator: webhook });
  expect(made).toMatchObject({ tenant_id: api.tenantId, priority: 100, enabled: true, match });
  const { secret: _, ...shown } = webhook;
  expect(made.evaluator).toEqual({ ...shown, timeout_ms: 2_000, on_error: 'deny', secret_set: true });
  const { policy_id, tenant_id } = made;
  const read = await api.client.ok('/policies/get_policy_by_id', { policy_id, tenant_id }, PolicyResponse);
  expect(read.policy).toEqual(made);
});

test('the end of a policy must be ahead when it is created, and null removes it', async () => {
  const end_at = '2999-01-01T00:00:00.000Z';
  const past = { ...simple, name: 'past', end_at: '2000-01-01T00:00:00Z' };
  expect(await api.client.failure('/policies/create_policy', past)).toBe('400 BAD_REQUEST');
  const made = await policyFor(api.client, { ...simple, end_at });
  expect(made.end_at).toBe(end_at);
  const { policy_id } = made;
  const update = async (change: object) =>
    (await api.client.ok('/policies/update_policy', { policy_id, ...change }, PolicyResponse)).policy;
  expect(await update({ priority: 7 })).toMatchObject({ end_at, priority: 7 });
  expect(await update({ end_at: null })).not.toHaveProperty('end_at');
});

test('only what is given changes, and the secret stays', async () => {
  const { policy_id, ...made } = await policyFor(api.client, { ...simple, evaluator: webhook });
  const changed = { policy_id, priority: 7, evaluator: { ...made.evaluator, timeout_ms: 500 } };
  const { policy } = await api.client.ok('/policies/update_policy', changed, PolicyResponse);
  expect(policy).toMatchObject({ priority: 7, decision: 'deny', evaluator: { timeout_ms: 500, secret_set: true } });
});

test('a secret does not go to another URL: it is given anew, or none is', async () => {
  const { policy_id, evaluator } = await policyFor(api.client, { ...simple, evaluator: webhook });
  const url = 'https://example.com/another';
  const change = (secret?: string | null) => ({
    policy_id,
    evaluator: { ...evaluator, url, ...(secret !== undefined && { secret }) },
  });
  expect(await api.client.failure('/policies/update_policy', change())).toBe('400 BAD_REQUEST');
  const { policy } = await api.client.ok('/policies/update_policy', change('new'), PolicyResponse);
  expect(policy.evaluator).toMatchObject({ url, secret_set: true });
  await api.client.ok('/policies/update_policy', { policy_id, evaluator: webhook }, PolicyResponse);
  const bare = await api.client.ok('/policies/update_policy', change(null), PolicyResponse);
  expect(bare.policy.evaluator).toMatchObject({ url, secret_set: false });
});

test.each<[string, object]>([
  ['the scope of a policy', { scope: 'plan' }],
  ['an unknown member of match', { match: { tool: ['a'] } }],
  ['an unknown member of not', { match: { not: { tool: ['a'] } } }],
  ['an unknown operator', { match: { arguments: [{ path: 'a', op: 'like', value: 'x' }] } }],
  ['an unknown member of the evaluator', { evaluator: { type: 'cel', expression: 'true', x: 1 } }],
  ['an unknown evaluator', { evaluator: { type: 'rego', expression: 'true' } }],
  ['a bad regular expression', { match: { arguments: [{ path: 'a', op: 'matches', value: '(' }] } }],
  ['an evaluator inside the network', { evaluator: { type: 'webhook', url: 'http://10.0.0.1/' } }],
  ['a reminder after the end', { evaluator: { approval: { timeout_seconds: 5, reminder_seconds: 9 } } }],
])('a change is 400: %s', async (_what, change) => {
  const { policy_id } = await policyFor(api.client, simple);
  expect(await api.client.failure('/policies/update_policy', { policy_id, ...change })).toBe('400 BAD_REQUEST');
});

test('another tenant_id is 403, and a policy of another tenant 404', async () => {
  const { policy_id } = await policyFor(api.client, simple);
  expect(await api.client.failure('/policies/get_policies', { tenant_id: 'ten_other' })).toBe('403 forbidden');
  const other = await api.clientOf(await api.otherTenant(), ['admin']);
  expect(await other.failure('/policies/delete_policy', { policy_id })).toBe('404 NOT_FOUND');
});

test('lists by scope and by what is switched on, the newest first', async () => {
  const first = await policyFor(api.client, simple);
  const second = await policyFor(api.client, { ...simple, scope: 'plan', enabled: false });
  const list = (filter: object) => api.client.ok('/policies/get_policies', filter, GetPoliciesResponse);
  expect((await list({})).policies).toEqual([second, first]);
  expect((await list({ scope: 'plan' })).policies).toEqual([second]);
  expect((await list({ enabled: true })).policies).toEqual([first]);
});

test('a test says of each policy why it decided or did not, and leaves no event', async () => {
  await policyFor(api.client, { ...simple, name: 'never', match: { tools: ['mail'] }, priority: 1 });
  await policyFor(api.client, { ...simple, name: 'off', enabled: false });
  await policyFor(api.client, { ...simple, name: 'seen', decision: 'audit', priority: 2 });
  const first = await policyFor(api.client, { ...simple, name: 'first', reason: 'Not today.', priority: 3 });
  await policyFor(api.client, { ...simple, name: 'last', priority: 4 });
  const { trace, ...found } = await tested(api.client, { tool: 'a' });
  expect(found).toEqual({ decision: 'deny', matched: true, policy_id: first.policy_id });
  expect(trace.map(({ name, outcome, explanation }) => [name, outcome, explanation])).toEqual([
    ['never', 'not_matched', 'tools: a does not match.'],
    ['seen', 'audited', 'The policy seen applies.'],
    ['first', 'decided', 'Not today.'],
    ['last', 'not_reached', 'first had decided.'],
    ['off', 'disabled', 'It is switched off.'],
  ]);
  expect(await api.database.query("SELECT 1 FROM events WHERE category = 'policy'")).toEqual([]);
});

test('a test is asked about the agent, its skill and the arguments that it names', async () => {
  const about = { agent_type: 'writer', instance_id: 'writer-7', skill_id: 'translate', arguments: { to: 'x' } };
  const match = {
    ...{ agent_types: ['writer'], instance_ids: ['writer-7'], skills: ['translate'], actions: ['call'] },
    arguments: [{ path: 'to', op: 'eq' as const, value: 'x' }],
  };
  await policyFor(api.client, { ...simple, match });
  expect((await tested(api.client, about)).decision).toBe('deny');
  for (const name of Object.keys(about))
    expect((await tested(api.client, { ...about, [name]: undefined })).decision).toBe('allow');
});
