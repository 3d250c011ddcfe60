import { expect, test } from 'vitest';
import type { Operation } from '../../contracts/api/operation.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import type { AuditAction, AuditEntry } from '../../contracts/api/tenants/audit.js';
import { AUDIT_ACTIONS } from '../../contracts/api/tenants/audit.js';
import { serveApi } from '../api/served-api.js';

type Name = keyof typeof OPERATIONS;
type Body = Record<string, unknown>;
interface Case {
  operation: Name;
  action: AuditAction;
  body: () => Body | Promise<Body>;
}

const api = await serveApi();
const SECRET = 'a-secret-that-is-not-shown';

async function made(operation: Name, body: Body): Promise<Record<string, Body>> {
  const answer = await api.client.post(OPERATIONS[operation].path, body);
  expect([operation, answer.status, answer.body]).toEqual([operation, 200, expect.anything()]);
  return answer.body as Record<string, Body>;
}

const webhook = (url: string) => ({ type: 'webhook', url, secret: SECRET });
const newPolicy = { scope: 'plan', name: 'p', decision: 'deny', evaluator: webhook('https://example.com/a') };
const config = { url: 'https://example.com/hook', secret: SECRET, headers: { authorization: SECRET } };
const newRule = { name: 'r', condition: { event: 'agent.*' }, notifications: [{ type: 'webhook', config }] };
const instance = { instance_id: 'worker-1' };
const hosting = { deployment_mode: 'hosted', public_url: 'http://127.0.0.1:9', agent_card: {} };
const newAgent = { agent_type: 'worker', ...instance, ...hosting };
const dispatch_auth = { type: 'api_key', name: 'x-api-key', value: SECRET };
const policy = async () => ({ policy_id: (await made('createPolicy', newPolicy)).policy?.policy_id });
const rule = async () => ({ rule_id: (await made('newAlert', newRule)).rule_id });
const credential = async () => {
  const { credential: one } = await made('createCredential', { name: 'c', scopes: ['read'] });
  return { credential_id: one?.credential_id };
};
const price = { model: 'm', input_per_million: 1, output_per_million: 2 };

/** Every operation that administers, and what it is in the audit. */
const CASES: Case[] = [
  { operation: 'createPolicy', action: 'policy.create', body: () => newPolicy },
  {
    ...{ operation: 'updatePolicy', action: 'policy.update' },
    body: async () => ({ ...(await policy()), evaluator: webhook('https://example.com/b') }),
  },
  { operation: 'deletePolicy', action: 'policy.delete', body: policy },
  { operation: 'updateGuard', action: 'guard.update', body: () => ({ guard: 'path', enabled: false }) },
  { operation: 'newAlert', action: 'alert_rule.create', body: () => newRule },
  { operation: 'updateAlert', action: 'alert_rule.update', body: async () => ({ ...(await rule()), enabled: false }) },
  { operation: 'deleteAlert', action: 'alert_rule.delete', body: rule },
  { operation: 'createCredential', action: 'credential.create', body: () => ({ name: 'c', scopes: ['read'] }) },
  { operation: 'rotateCredential', action: 'credential.rotate', body: credential },
  { operation: 'revokeCredential', action: 'credential.revoke', body: credential },
  { operation: 'revokeUser', action: 'user.revoke', body: () => ({ user_id: 'eve' }) },
  { operation: 'setLimits', action: 'limits.set', body: () => ({ messages_per_day: 7 }) },
  { operation: 'setPrices', action: 'price.set', body: () => price },
  { operation: 'setDefaultType', action: 'default_type.set', body: () => ({ agent_type: 'worker' }) },
  { operation: 'setToolOwner', action: 'tool_owner.set', body: () => ({ tool: 'pay', agent_types: ['worker'] }) },
  { operation: 'allowType', action: 'agent_type.allow', body: () => ({ agent_type: 'worker' }) },
  { operation: 'registerAgent', action: 'agent.register', body: () => ({ ...newAgent, dispatch_auth }) },
  { operation: 'drainAgent', action: 'agent.drain', body: () => instance },
  { operation: 'undrainAgent', action: 'agent.undrain', body: () => instance },
  { operation: 'deregisterAgent', action: 'agent.deregister', body: () => instance },
  { operation: 'disallowType', action: 'agent_type.disallow', body: () => ({ agent_type: 'worker' }) },
];

/** Operations for administrators that read, test, or do their work on content: nothing that decides in the tenant changes. */
const CHANGE_NOTHING = `
  getCredentials getHeldOutput exportApprovals heartbeat callTool getPolicies getPolicy testPolicy backtestPolicy getGuards getAlerts
  getAlert testAlert getDeliveries redeliver getLimits getPrices getAudit newKnowledgeBase updateKnowledgeBase deleteKnowledgeBase
  ingestDocuments refreshKnowledgeBase deleteKnowledgeSource`
  .trim()
  .split(/\s+/);

async function newest(): Promise<AuditEntry[]> {
  const { body } = await api.client.post('/audit/get', { page_size: 100 });
  return (body as { entries: AuditEntry[] }).entries;
}

test('every operation for administrators is audited or changes nothing, and every action has its operation', () => {
  const administrative = Object.entries<Operation>(OPERATIONS).filter(([, { access, othersNeed }]) =>
    ['admin', 'full'].includes(othersNeed ?? access),
  );
  const known = [...CASES.map(({ operation }) => operation), ...CHANGE_NOTHING];
  expect(administrative.map(([name]) => name).sort()).toEqual(known.toSorted());
  // Those without a route of a tenant are tested below, with the approvals, with the operators of the platform and with the console.
  const byOperators = ['tenant.create', 'tenant.update', 'tenant.delete', 'operator.token'];
  const others = [...byOperators, 'console.sign_in', 'console.sign_out', 'request.decide'];
  expect(AUDIT_ACTIONS.toSorted()).toEqual([...CASES.map(({ action }) => action), ...others].toSorted());
});

test.each(CASES)('$operation writes $action with who, where, before and after, and no secret', async (one) => {
  const body = await one.body();
  const before = await newest();
  await made(one.operation, body);
  const entries = (await newest()).slice(0, -before.length);
  const [own = {} as AuditEntry] = entries.filter(({ action }) => action === one.action);
  expect(own).toMatchObject({ action: one.action, ip: '127.0.0.1', target: { id: expect.any(String) } });
  expect(own.principal).toEqual({ type: 'credential', id: expect.stringMatching(/^cred_/), name: 'test' });
  const isNew = /\.(create|register|allow)$/.test(one.action);
  const isGone = /\.delete$/.test(one.action);
  if (isNew) expect(own.before).toBeNull();
  if (isGone) expect([own.before, own.after]).toEqual([expect.any(Object), null]);
  else expect(own.after).toEqual(expect.any(Object));
  expect(JSON.stringify(entries)).not.toContain(SECRET);
});

test('changed rows carry who changed them', async () => {
  const tables = ['policies', 'guards', 'alert_rules', 'credentials', 'tenant_limits', 'model_prices', 'agents'];
  for (const table of tables) {
    const rows = await api.database.column(`SELECT updated_by FROM ${table} WHERE updated_by IS NOT NULL`);
    expect([table, rows.length > 0]).toEqual([table, true]);
  }
  const decided = ['agent_types', 'tool_owners'].map((table) => `SELECT decided_by FROM ${table}`).join(' UNION ');
  expect(await api.database.column(decided)).toEqual([expect.stringMatching(/^cred_/)]);
});

test('an agent that registers again as it was is no change, and one that differs is', async () => {
  const registrations = async () => (await newest()).filter(({ action }) => action === 'agent.register');
  await api.client.post('/agents/allow_type', { agent_type: 'worker' });
  await made('registerAgent', newAgent);
  const { length } = await registrations();
  await made('registerAgent', newAgent);
  expect(await registrations()).toHaveLength(length);
  await made('registerAgent', { ...newAgent, agent_version: '2' });
  const [changed] = await registrations();
  expect([changed?.before?.agent_version, changed?.after?.agent_version]).toEqual([null, '2']);
});

test('an agent that registers again with another secret, or by another credential, is a change', async () => {
  const newestOf = async () => (await newest()).find(({ action }) => action === 'agent.register');
  const hosted = { ...newAgent, instance_id: 'worker-2', dispatch_auth };
  await made('registerAgent', hosted);
  const first = await newestOf();
  await made('registerAgent', hosted);
  expect((await newestOf())?.audit_id).toBe(first?.audit_id);
  await made('registerAgent', { ...hosted, dispatch_auth: { ...dispatch_auth, value: `${SECRET}-2` } });
  const replaced = await newestOf();
  expect(replaced?.after).toEqual({ ...first?.after, dispatch_auth_changed: true });
  expect(JSON.stringify(replaced)).not.toContain(SECRET);
  // Who registered an agent may not answer what it asks.
  const other = await api.clientOf(api.tenantId, ['full']);
  await other.post('/agents/register', { ...hosted, dispatch_auth: { ...dispatch_auth, value: `${SECRET}-2` } });
  const taken = await newestOf();
  expect(taken?.after?.credential_id).toBe(taken?.principal.id);
  expect(taken?.before?.credential_id).toBe(first?.principal.id);
});

test('it is read with the scope admin, and streamed as JSON Lines that go on from the cursor of the last', async () => {
  const reader = await api.clientOf(api.tenantId, ['read']);
  expect(await reader.failure('/audit/get', {})).toBe('403 forbidden');
  const lines = async (request: object) => {
    const asked = { ...request, format: 'jsonl', sort: 'oldest' };
    const { status, headers, body } = await api.client.post('/audit/get', asked);
    expect([status, headers.get('content-type')]).toEqual([200, 'application/jsonl']);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as AuditEntry);
  };
  const all = await lines({});
  expect(all.map(({ audit_id }) => audit_id)).toEqual((await lines({})).map(({ audit_id }) => audit_id));
  const cursor = all.at(-1)?.cursor;
  expect(await lines({ cursor })).toEqual([]);
  await made('setLimits', { messages_per_day: 8 });
  await made('setLimits', { messages_per_day: null });
  const states = (await lines({ cursor })).map(({ before, after }) =>
    [before, after].map((one) => one?.messages_per_day),
  );
  expect(states).toEqual([
    [7, 8],
    [8, null],
  ]);
});
