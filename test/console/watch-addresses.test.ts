import { expect, test } from 'vitest';
import { changedLimits, limitsDraft, parseAccessSearch, shownCredentials } from '../../console/access/search.js';
import { actionText, auditBody, pageOf, parseAuditSearch } from '../../console/audit/search.js';
import { costText, daysOf, parseUsageSearch, shortCount, usageBody } from '../../console/usage/search.js';
import { AUDIT_OPERATIONS } from '../../contracts/api/tenants/audit.js';
import { SetLimitsRequest } from '../../contracts/api/tenants/tenants.js';
import { GetUsageRequest } from '../../contracts/api/usage.js';

const NOW = Date.parse('2026-11-28T12:00:30.500Z');

test.each([
  [{}, { range: '7d', group_by: 'day', sort: 'key', order: 'desc' }],
  [
    { range: '30d', by: 'user', measure: 'total_tokens' },
    { range: '30d', group_by: 'user', sort: 'total_tokens', order: 'desc' },
  ],
  [
    { range: '1y', by: 'planet', measure: 'joy' },
    { range: '7d', group_by: 'day', sort: 'key', order: 'desc' },
  ],
])('the usage at %j is %j', (address, body) => {
  expect(usageBody(parseUsageSearch(address))).toEqual(body);
  expect(GetUsageRequest.safeParse(body).success).toBe(true);
});

test('days on which nothing was used are in the chart too', () => {
  const rows = [{ day: '2026-11-27', messages: 4, total_tokens: 9, cost_usd: 0.5 }];
  expect(daysOf('24h', rows, 'messages', NOW)).toEqual([
    { day: '2026-11-27', value: 4 },
    { day: '2026-11-28', value: 0 },
  ]);
  expect(daysOf('30d', rows, 'cost_usd', NOW)).toHaveLength(30);
  expect([0, 0.0042, 12.3, 1_204.4].map(costText)).toEqual(['$0', '$0.0042', '$12.30', '$1,204']);
  expect([812, 12_400, 3_100_000].map(shortCount)).toEqual(['812', '12.4 k', '3.1 M']);
});

test.each([
  [
    { action: 'policy.*', time: '1h', entry: 'aud_1' },
    { action: 'policy.*', from: '2026-11-28T11:00:00.000Z' },
  ],
  [
    { action: 'guard.update', principal: 'cred_1', target: 'path', sort: 'oldest' },
    { action: 'guard.update', principal: 'cred_1', target: 'path', sort: 'oldest' },
  ],
  [{ action: 'policy', principal: '', time: 'x', sort: 'newest', target: 'x'.repeat(257) }, {}],
])('the audit at %j is %j', (address, body) => {
  expect(auditBody(parseAuditSearch(address), NOW)).toEqual(body);
  expect(AUDIT_OPERATIONS.getAudit.request.safeParse(body).success).toBe(true);
});

const OF_CRED = { credential: 'cred_1' };
test.each<[string, string[], string, string, object]>([
  ['policy.update', ['policy', 'pol_1', 'payments'], 'Changed the policy payments', '/policies', { policy: 'pol_1' }],
  [
    'agent.drain',
    ['agent', 'w-1', 'worker'],
    'Drained the agent worker',
    '/fleet',
    { instance: 'w-1', type: 'worker' },
  ],
  ['credential.rotate', ['credential', 'cred_1', 'ci'], 'Gave a new secret to the credential ci', '/access', OF_CRED],
  ['limits.set', ['tenant', 'ten_1'], 'Set the limits of the tenant', '/access', { tab: 'limits' }],
])('%s reads as a sentence and leads to its page', (action, [type = '', id = '', name], text, to, search) => {
  const target = { type, id, ...(name && { name }) };
  expect(actionText({ action, target })).toBe(text);
  expect(pageOf(target)).toEqual({ to, search });
});

const READ: 'read'[] = ['read'];
test('credentials that have ended, and people, are shown where one asks for them', () => {
  const one = (credential_id: string, name: string, change: object = {}) => ({
    ...{ credential_id, client_id: credential_id, tenant_id: 'ten_1', name, agent_types: [], scopes: READ },
    ...{ created_at: '2026-11-01T00:00:00.000Z', expires_at: null, revoked_at: null, last_used_at: null, ...change },
  });
  const all = [
    one('cred_1', 'billing'),
    one('cred_2', 'old', { revoked_at: '2026-11-02T00:00:00.000Z' }),
    one('cred_3', 'late', { expires_at: '2026-11-28T12:00:00.000Z' }),
    one('per_1', 'Anna'),
  ];
  const names = (address: object) =>
    shownCredentials(all, parseAccessSearch({ ...address }), NOW).map(({ name }) => name);
  expect(names({})).toEqual(['billing', 'Anna']);
  expect(names({ show: 'people' })).toEqual(['Anna']);
  expect(names({ show: 'revoked', tab: 'x' })).toEqual(['old', 'late']);
  expect(names({ q: 'BILL' })).toEqual(['billing']);
});

test('only the limits that a form has changed are sent', () => {
  const perUser = { per_user: { messages_per_day: 3 } };
  const before = limitsDraft({ messages_per_day: 10, tokens_per_day: null, cost_usd_per_month: 2.5, ...perUser });
  expect(changedLimits(before, before)).toEqual({});
  const after = { ...before, messages_per_day: '', tokens_per_day: '0', 'per_user.cost_usd_per_month': '1.5' };
  const change = changedLimits(before, after);
  expect(change).toEqual({ messages_per_day: null, tokens_per_day: 0, per_user: { cost_usd_per_month: 1.5 } });
  expect(SetLimitsRequest.safeParse(change).success).toBe(true);
});
