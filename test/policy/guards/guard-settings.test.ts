import { expect, test } from 'vitest';
import { GUARD_OPERATIONS, type Guard } from '../../../contracts/api/policies/guards.js';
import { serveApi } from '../../api/served-api.js';
import type { ApiClient } from '../../setup/platform/api-client.js';

const api = await serveApi();
const { client } = api;

const guards = async (of = client): Promise<Guard[]> =>
  (await of.ok('/policies/get_guards', {}, GUARD_OPERATIONS.getGuards.response)).guards;
const guardOf = async (name: string, of: ApiClient) => (await guards(of)).find(({ guard }) => guard === name);
const update = (change: object, of = client) =>
  of.ok('/policies/update_guard', change, GUARD_OPERATIONS.updateGuard.response);
/** A tenant of its own, so that no test sees what another has changed. */
const newTenant = async () => api.clientOf(await api.otherTenant(), ['admin']);

test('the guards have the defaults that are documented', async () => {
  const limits = {
    ...{ max_message_bytes: 262_144, max_output_bytes: 1_048_576, max_argument_bytes: 262_144 },
    ...{ max_result_bytes: 524_288, max_depth: 32, max_hops: 8, max_repeated_calls: null },
  };
  const secrets = {
    detect: ['credentials', 'payment_cards', 'bank_accounts', 'national_ids'],
    stages: ['message', 'output', 'tool_arguments', 'tool_result'],
  };
  const defaults: [guard: string, enabled: boolean, decision: string, config: object][] = [
    ['path', true, 'deny', { allowed_roots: [] }],
    ['egress', true, 'deny', { allowed_hosts: [], denied_hosts: [], stages: ['tool_arguments'] }],
    ['secrets', false, 'deny', secrets],
    ['prompt_injection', false, 'require_approval', { stages: ['message', 'tool_result'] }],
    ['limits', true, 'deny', limits],
  ];
  const unchanged = { updated_at: null, updated_by: null };
  expect(await guards(await newTenant())).toEqual(
    defaults.map(([guard, enabled, decision, config]) => ({ guard, enabled, decision, config, ...unchanged })),
  );
});

test('an update changes what it names, member by member, and for this tenant only', async () => {
  const own = await newTenant();
  const other = await newTenant();
  await update({ guard: 'egress', config: { allowed_hosts: ['API.Example.com'] } }, own);
  const { guard } = await update(
    { guard: 'egress', decision: 'require_approval', config: { denied_hosts: ['*.x.example'] } },
    own,
  );
  expect(guard).toEqual({
    guard: 'egress',
    enabled: true,
    decision: 'require_approval',
    config: { allowed_hosts: ['api.example.com'], denied_hosts: ['*.x.example'], stages: ['tool_arguments'] },
    updated_at: expect.any(String),
    updated_by: expect.stringMatching(/^cred_/),
  });
  const off = { ...guard, enabled: false, updated_at: expect.any(String) };
  expect((await update({ guard: 'egress', enabled: false }, own)).guard).toMatchObject(off);
  expect(await guardOf('egress', own)).toMatchObject({ enabled: false, decision: 'require_approval' });
  expect(await guardOf('egress', other)).toMatchObject({ enabled: true, updated_at: null, updated_by: null });
});

test('of two updates at once each keeps what the other changed', async () => {
  const own = await newTenant();
  const hosts = Array.from({ length: 8 }, (_, index) => `host-${index}.example`);
  await Promise.all([
    ...hosts.map(() => update({ guard: 'limits', config: { max_depth: 5 } }, own)),
    update({ guard: 'limits', config: { max_hops: 2 } }, own),
    update({ guard: 'limits', decision: 'allow' }, own),
  ]);
  const config = { max_depth: 5, max_hops: 2 };
  expect(await guardOf('limits', own)).toMatchObject({ decision: 'allow', config });
});

test.each([
  ['an unknown guard', { guard: 'firewall' }],
  ['no guard', { enabled: true }],
  ['an unknown decision', { guard: 'path', decision: 'audit' }],
  ['an unknown field', { guard: 'path', color: 'red' }],
  ['a member of another guard', { guard: 'path', config: { allowed_hosts: ['example.com'] } }],
  ['a relative root', { guard: 'path', config: { allowed_roots: ['workspace'] } }],
  ['a root with ..', { guard: 'path', config: { allowed_roots: ['/workspace/..'] } }],
  ['a URL as a host', { guard: 'egress', config: { allowed_hosts: ['https://example.com'] } }],
  ['a star inside a host', { guard: 'egress', config: { allowed_hosts: ['a.*.example.com'] } }],
  ['an unknown stage', { guard: 'secrets', config: { stages: ['everywhere'] } }],
  ['an unknown kind of secret', { guard: 'secrets', config: { detect: ['horoscopes'] } }],
  ["a bound above the platform's own", { guard: 'limits', config: { max_depth: 33 } }],
  ['a bound of nothing', { guard: 'limits', config: { max_message_bytes: 0 } }],
])('%s is 400', async (_what, change) => {
  expect(await client.failure('/policies/update_guard', change)).toBe('400 BAD_REQUEST');
});

test('the tenant of a request must be that of the token', async () => {
  for (const path of ['/policies/get_guards', '/policies/update_guard']) {
    const body = { guard: 'path', tenant_id: 'ten_other' };
    const asked = path.endsWith('get_guards') ? { tenant_id: 'ten_other' } : body;
    expect((await client.post(path, asked)).status).toBe(403);
    expect((await client.post(path, { ...asked, tenant_id: api.tenantId })).status).toBe(200);
  }
});
