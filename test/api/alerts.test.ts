import { expect, test } from 'vitest';
import { AlertRule, GetAlertsResponse } from '../../contracts/api/alerts.js';
import { serveApi } from './served-api.js';

const api = await serveApi();
const { client } = api;

const hook = { type: 'webhook', config: { url: 'https://example.com/hook' } };
const rule = { name: 'Night shift', condition: { event: 'agent.*' }, notifications: [hook] };
const webhook = (config: object) => ({ notifications: [{ ...hook, config: { ...hook.config, ...config } }] });
const create = (change: object = {}) => client.post('/policies/new_alert', { ...rule, ...change });
const created = (change: object = {}) => client.ok('/policies/new_alert', { ...rule, ...change }, AlertRule);
const update = (rule_id: string, change: object) =>
  client.ok('/policies/update_alert', { rule_id, ...change }, AlertRule);

test('a rule has the defaults that are documented, and no wrapper', async () => {
  const { body } = await create();
  expect(body).toEqual({
    rule_id: expect.stringMatching(/^rule_/),
    tenant_id: api.tenantId,
    name: 'Night shift',
    description: '',
    condition: { event: 'agent.*' },
    notifications: [{ channel_id: expect.any(String), ...hook, enabled: true, secrets_set: [] }],
    severity: 'warning',
    threshold: 1,
    window_seconds: 60,
    cooldown_seconds: 0,
    approvers: [],
    writers: [expect.stringMatching(/^cred_/)],
    enabled: true,
    created_at: expect.any(String),
    updated_at: expect.any(String),
    updated_by: expect.stringMatching(/^cred_/),
  });
  const { rule_id } = body as AlertRule;
  expect((await client.post('/policies/get_alert_by_id', { rule_id })).body).toEqual(body);
});

test('an update changes what it names, and nothing else', async () => {
  const before = await created({ condition: { event: 'agent.*', filters: { status: ['offline'] } }, threshold: 5 });
  const after = await update(before.rule_id, { severity: 'critical', enabled: false });
  const { updated_at } = after;
  expect(after).toEqual({ ...before, severity: 'critical', enabled: false, updated_at });
  expect((await update(before.rule_id, { condition: { event: '*' } })).condition).toEqual({ event: '*' });
});

test('lists are pages, newest first', async () => {
  const elsewhere = await api.clientOf(await api.otherTenant(), ['admin']);
  for (const name of ['a', 'b', 'c']) await elsewhere.ok('/policies/new_alert', { ...rule, name }, AlertRule);
  const page = await elsewhere.ok('/policies/get_alerts', { page: 1, page_size: 2 }, GetAlertsResponse);
  expect(page).toMatchObject({ count: 3, page: 1, page_size: 2, total_pages: 2 });
  expect(page.rules.map(({ name }) => name)).toEqual(['c', 'b']);
  expect(page).not.toHaveProperty('ok');
});

test.each([
  ['no channel', { notifications: [] }],
  ['an unknown channel', { notifications: [{ type: 'pager', config: {} }] }],
  ['an unknown field', { color: 'red' }],
  ['an unknown field of a config', webhook({ retries: 9 })],
  ['a pattern that no event matches', { condition: { event: 'agents.*' } }],
  ['a filter that is an object', { condition: { event: '*', filters: { a: {} } } }],
  ['a threshold of 0', { threshold: 0 }],
  ['five attempts', webhook({ max_attempts: 5 })],
  ['a header that the platform sets', webhook({ headers: { Host: 'x' } })],
  ['a header with a line break', webhook({ headers: { a: 'b\r\nc: d' } })],
  ['a secret that is no base64 after its prefix', webhook({ secret: 'whsec_?' })],
  // Which addresses are private, and which URLs can be asked, is a table of test/runtime/outbound-guard.test.ts.
  ['a private address', webhook({ url: 'http://[::ffff:a00:1]/hook' })],
  ['a URL with a password', webhook({ url: 'http://user:password@example.com/hook' })],
  ['a URL that is none', webhook({ url: 'not a url' })],
  ['Slack without an address', { notifications: [{ type: 'slack', config: { bot_token: 'x' } }] }],
  ['email without an address', { notifications: [{ type: 'email', config: { recipients: ['nobody'] } }] }],
  [
    'more than 50 recipients in all',
    {
      notifications: [26, 25].map((count, at) => ({
        type: 'email',
        config: { recipients: Array.from({ length: count }, (_, nth) => `a${nth}@${at}.example.com`) },
      })),
    },
  ],
  ['a channel_id of no channel', { notifications: [{ ...hook, channel_id: 'chn_1' }] }],
])('%s is 400', async (_what, change) => {
  expect(await create(change)).toMatchObject({ status: 400, body: { code: 'BAD_REQUEST' } });
});

test('secrets are stored encrypted, never shown, and kept, replaced or removed by an update', async () => {
  const config = { url: 'https://example.com/hook', secret: 'sesame-1', headers: { 'X-Key': 'sesame-2' } };
  const ofSlack = { webhook_url: 'https://hooks.slack.com/services/sesame-3', signing_secret: 'sesame-4' };
  const slack = { type: 'slack', config: ofSlack };
  const before = await created({ notifications: [{ type: 'webhook', config }, slack] });
  expect(before.notifications.map(({ secrets_set }) => secrets_set)).toEqual([
    ['secret', 'headers.X-Key'],
    ['webhook_url', 'signing_secret'],
  ]);
  const rows = await api.database.query<{ text: string }>(
    "SELECT alert_channels::text || encode(coalesce(secrets, ''), 'escape') AS text FROM alert_channels",
    [],
  );
  expect(JSON.stringify([before, rows])).not.toContain('sesame');
  const same = await update(before.rule_id, { notifications: before.notifications });
  expect(same.notifications).toEqual(before.notifications);
  const [webhook] = before.notifications;
  const without = { ...webhook, config: { url: config.url, secret: null, headers: null } };
  const removed = await update(before.rule_id, { notifications: [without] });
  expect(removed.notifications).toEqual([{ ...webhook, secrets_set: [] }]);
});

test('a webhook that moves to another receiver does not take its secrets along', async () => {
  const config = { url: 'https://example.com/hook', secret: 'sesame', headers: { 'X-Key': 'sesame' } };
  const { rule_id, notifications } = await created({ notifications: [{ type: 'webhook', config }] });
  const moved = { ...notifications[0], config: { url: 'https://elsewhere.example/hook' } };
  expect((await update(rule_id, { notifications: [moved] })).notifications[0]?.secrets_set).toEqual([]);
});

test('a tenant has at most 500 rules', async () => {
  const other = await api.otherTenant();
  const elsewhere = await api.clientOf(other, ['admin']);
  await api.database.query(
    `INSERT INTO alert_rules (tenant_id, rule_id, name, description, event, severity, threshold, window_seconds, cooldown_seconds, enabled)
       SELECT $1, 'rule_' || n, 'x', '', '*', 'info', 1, 60, 0, true FROM generate_series(1, 500) n`,
    [other],
  );
  expect(await elsewhere.failure('/policies/new_alert', rule)).toBe('409 CONFLICT');
});
