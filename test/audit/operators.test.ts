import { expect, test } from 'vitest';
import { createOperator, revokeOperator } from '../../auth/operators.js';
import type { Operation } from '../../contracts/api/operation.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import type { AuditEntry } from '../../contracts/api/tenants/audit.js';
import { ASKS, answerMessage, joinOnRecord } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { testAuthor } from '../setup/author.js';

const api = await serveApi({ clocks: { credentialCheckMs: 0 } });
const CLI = testAuthor('');
const made = await api.db.system((tx) => createOperator(tx, api.secrets, CLI, 'ops'));
const { client_id, client_secret, operator_id } = made;

async function tokenFor(body: object = {}): Promise<string> {
  const answer = await api.client.post('/auth/get_token', { client_id, client_secret, ...body });
  expect([answer.status, answer.body]).toEqual([200, expect.anything()]);
  return (answer.body as { token: string }).token;
}
const own = api.clientWith(await tokenFor());
const auditOf = async (tenant_id: string) => {
  const client = api.clientWith(await tokenFor({ tenant_id, scopes: ['admin'] }));
  return ((await client.post('/audit/get', { page_size: 100 })).body as { entries: AuditEntry[] }).entries;
};
interface Created {
  tenant: { tenant_id: string; limits: object };
  client_secret?: string;
  credential?: { client_id: string };
}

test("an operator's own token reaches tenants and the platform's health, and nothing of a tenant", async () => {
  for (const [name, operation] of Object.entries<Operation>(OPERATIONS)) {
    const { access, method, path } = operation;
    if (access === 'public' || method === 'GET') continue;
    const body = JSON.stringify(name === 'platformHealth' ? {} : { tenant_id: 'ten_unknown' });
    const { status } = await own.raw(path.replace(/:\w+/, 'x'), body, await own.headers());
    const reached = status !== 403 && status !== 401;
    expect([name, reached]).toEqual([name, access === 'operator']);
  }
  const health = await own.post('/platform/get_health', {});
  expect([health.status, health.body]).toEqual([200, expect.objectContaining({ ok: true, nodes: expect.any(Array) })]);
  expect(await api.client.failure('/tenants/get', {})).toBe('403 forbidden');
});

test('it creates, lists, reads, changes and deletes tenants, each in the audit of the tenant', async () => {
  const credential = { name: 'first', scopes: ['full'] };
  const created = await own.post('/tenants/create', { name: 'acme', limits: { messages_per_day: 10 }, credential });
  const { tenant, client_secret: secret, credential: first } = created.body as Created;
  const { tenant_id } = tenant;
  expect(tenant).toMatchObject({ name: 'acme', limits: { messages_per_day: 10, tokens_per_day: null } });
  expect((await own.post('/tenants/update', { tenant_id, name: 'acme inc' })).body).toMatchObject({
    tenant: { name: 'acme inc', default_agent_type: null, limits: { messages_per_day: 10 } },
  });
  expect((await own.post('/tenants/get_by_id', { tenant_id })).body).toMatchObject({ tenant: { name: 'acme inc' } });
  expect((await own.post('/tenants/get', { page_size: 1 })).body).toMatchObject({ tenants: [{ tenant_id }] });
  const admin = api.clientWith(await api.tokenAs({ client_id: first?.client_id ?? '', client_secret: secret ?? '' }));
  expect((await admin.post('/sessions/get', {})).status).toBe(200);
  const entries = (await auditOf(tenant_id)).filter(({ action }) => action !== 'operator.token');
  expect(entries.map(({ action, principal }) => [action, principal.type, principal.id])).toEqual([
    ['tenant.update', 'operator', operator_id],
    ['credential.create', 'operator', operator_id],
    ['tenant.create', 'operator', operator_id],
  ]);
  const inTenant = await tokenFor({ tenant_id });
  expect((await own.post('/tenants/delete', { tenant_id })).status).toBe(200);
  expect(await admin.failure('/sessions/get', {})).toBe('401 unauthorized');
  expect(await api.clientWith(inTenant).failure('/sessions/get', {})).toBe('401 unauthorized');
  const again = await api.client.post('/auth/get_token', { client_id, client_secret, tenant_id });
  expect(again.status).toBe(404);
  const deleted = await api.database.query("SELECT principal_id FROM audit_entries WHERE action = 'tenant.delete'");
  expect(deleted).toEqual([{ principal_id: operator_id }]);
});

test('its limits are ceilings of those that the tenant sets', async () => {
  const { tenant } = (await own.post('/tenants/create', { name: 'bounded', limits: { messages_per_day: 5 } }))
    .body as Created;
  const { tenant_id } = tenant;
  const client = await api.clientOf(tenant_id, ['full']);
  const limits = async (given?: object) =>
    (await client.post(given ? '/tenants/set_limits' : '/tenants/get_limits', given ?? {})).body;
  expect(await limits()).toMatchObject({ limits: { messages_per_day: 5 } });
  expect(await client.failure('/tenants/set_limits', { messages_per_day: 6 })).toBe('403 forbidden');
  expect(await limits({ messages_per_day: 4 })).toMatchObject({ limits: { messages_per_day: 4 } });
  expect(await limits({ messages_per_day: null })).toMatchObject({ limits: { messages_per_day: 5 } });
  await own.post('/tenants/update', { tenant_id, limits: { messages_per_day: null } });
  expect(await limits({ messages_per_day: 6 })).toMatchObject({ limits: { messages_per_day: 6 } });
});

test('a token for a tenant lasts an hour, is recorded, answers no request and creates no credential', async () => {
  await joinOnRecord(api, 'worker-1');
  const { tenantId: tenant_id } = api;
  const answer = await api.client.post('/auth/get_token', { client_id, client_secret, tenant_id });
  expect(answer.body).toMatchObject({ expires_in: 3_600, scopes: ['read'] });
  const reader = api.clientWith(await tokenFor({ tenant_id }));
  expect(await reader.failure('/audit/get', {})).toBe('403 forbidden');
  const full = api.clientWith(await tokenFor({ tenant_id, scopes: ['full'] }));
  expect(await full.failure('/credentials/create', { name: 'x', scopes: ['read'] })).toBe('403 forbidden');
  const { credential_id } = { credential_id: (await api.credentialOf(tenant_id, ['read'])).client_id };
  expect(await full.failure('/credentials/rotate', { credential_id })).toBe('403 forbidden');
  expect(await full.failure('/tenants/create', { name: 'x' })).toBe('403 forbidden');
  const task = await api.client.send('hi', { metadata: { agent_type: 'worker' }, blocking: false });
  await answerMessage(api, task.id, ASKS);
  expect(await full.failure(`/messages/${task.id}/resolve`, { resolution: 'confirmed' })).toBe('403 forbidden');
  expect((await full.post('/tenants/set_limits', { messages_per_day: 1_000 })).status).toBe(200);
  const entries = (await auditOf(tenant_id)).filter(({ principal }) => principal.type === 'operator');
  const actions = entries.map(({ action, after }) => [action, after?.scopes]);
  expect(actions).toContainEqual(['operator.token', ['full']]);
  expect(actions).toContainEqual(['limits.set', undefined]);
});

test('a credential of a tenant gets no token for another tenant, nor more scopes than it has', async () => {
  const credential = await api.credentialOf(api.tenantId, ['admin']);
  const ask = async (body: object) => (await api.client.post('/auth/get_token', { ...credential, ...body })).status;
  expect(await ask({ tenant_id: await api.otherTenant() })).toBe(403);
  expect(await ask({ tenant_id: api.tenantId })).toBe(200);
  expect(await ask({ scopes: ['full'] })).toBe(403);
  const answer = await api.client.post('/auth/get_token', { ...credential, scopes: ['read'] });
  expect(answer.body).toMatchObject({ scopes: ['read'] });
});

test('a revoked operator has no tokens any more', async () => {
  const other = await api.db.system((tx) => createOperator(tx, api.secrets, CLI, 'other'));
  const client = api.clientWith(await api.tokenAs({ client_id: other.client_id, client_secret: other.client_secret }));
  expect((await client.post('/tenants/get', {})).status).toBe(200);
  await api.db.system((tx) => revokeOperator(tx, CLI, other.operator_id));
  expect(await client.failure('/tenants/get', {})).toBe('401 unauthorized');
});
