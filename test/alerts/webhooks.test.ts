import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { beforeAll, expect, test } from 'vitest';
import { AlertRule } from '../../contracts/api/alerts.js';
import { RedeliverResponse } from '../../contracts/api/deliveries.js';
import { documentedBlock } from '../setup/documented-block.js';
import { sharedPlatform, type TenantPlatform } from '../setup/platform/shared-platform.js';
import { type Arrived, receiver, status } from '../setup/receiver.js';
import { until } from '../setup/until.js';
import { deliveriesOf, ruleFor, untilDelivered, webhook } from './alert-fixture.js';

/** Everything that a receiver may find hard: no ASCII, an astral character, a line separator, quotes. */
const UNICODE = 'Zürich „😀" \u2028 "q" \\';

let shared: TenantPlatform;
beforeAll(async () => {
  shared = await sharedPlatform();
  return shared.dispose;
});
const client = () => shared.platform.client;

const hexOf = (secret: string, { raw }: Arrived) => createHmac('sha256', secret).update(raw).digest('hex');
const idOf = ({ body }: Arrived) => body.delivery_id as string;
const standardHeaders = ({ headers }: Arrived) => headers as Record<string, string>;

test('2xx is one attempt, and the body is the envelope of the specification', async () => {
  const to = await receiver(status(204));
  const { rule, happen } = await ruleFor(client(), [webhook(to.url)], { severity: 'critical' });
  const instance_id = await happen();
  const [delivery] = await untilDelivered(client(), rule.rule_id);
  expect(to.arrived).toHaveLength(1);
  const [arrived] = to.arrived as [Arrived];
  expect(arrived.headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': idOf(arrived) });
  expect(arrived.headers).not.toHaveProperty('x-service-signature');
  const { tenant_id } = shared.platform.devJson();
  expect(arrived.body).toEqual({
    delivery_id: delivery?.delivery_id,
    event_type: 'agent.registered',
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/),
    tenant_id,
    session_id: '',
    rule_name: rule.name,
    severity: 'critical',
    type: 'alert',
    event: { agent_type: rule.name, instance_id, tenant_id, connect_mode: 'connected' },
  });
  expect(delivery).toEqual({
    delivery_id: expect.stringMatching(/^dlv_/),
    rule_id: rule.rule_id,
    event_type: 'agent.registered',
    url: to.url,
    status: 'delivered',
    attempts: [{ at: expect.any(String), status_code: 204, response_time_ms: expect.any(Number), success: true }],
    created_at: expect.any(String),
  });
});

/** `isValid` of docs/alerts.md. */
async function documentedJs(): Promise<(raw: Buffer, signature: string, secret: string) => boolean> {
  const block = `${documentedBlock('alerts.md', 'js', 'function isValid')}\nexport { isValid };`;
  const { isValid } = (await import(`data:text/javascript,${encodeURIComponent(block)}`)) as {
    isValid: (raw: Buffer, headers: object, secret: string) => boolean;
  };
  return (raw, signature, secret) => isValid(raw, { 'x-service-signature': signature }, secret);
}

/** `is_valid` of docs/alerts.md. */
function documentedPython(raw: Buffer, signature: string, secret: string): boolean {
  const script = `${documentedBlock('alerts.md', 'python', 'is_valid')}
import sys
print(is_valid(sys.stdin.buffer.read(), sys.argv[1], sys.argv[2]))`;
  return execFileSync('python3', ['-c', script, signature, secret], { input: raw }).toString().trim() === 'True';
}

test('a delivery is signed over its raw bytes by every valid secret, as the docs verify it, and has the configured headers', async () => {
  const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`;
  const to = await receiver();
  const channel = webhook(to.url, { secret, headers: { 'X-Api-Key': 'k-42' } });
  const { rule, happen } = await ruleFor(client(), [channel], { name: UNICODE });
  expect(rule.notifications).toMatchObject([{ config: { url: to.url }, secrets_set: ['secret', 'headers.X-Api-Key'] }]);
  await happen();
  const [arrived] = (await to.untilArrived(1)) as [Arrived];
  expect([arrived.body.rule_name, arrived.headers['x-api-key']]).toEqual([UNICODE, 'k-42']);
  const signature = String(arrived.headers['x-service-signature']);
  expect(signature).toBe(hexOf(secret, arrived));
  const changed = Buffer.from(arrived.raw);
  changed[changed.length - 2] = 0x20;
  for (const isValid of [await documentedJs(), documentedPython])
    expect([isValid(arrived.raw, signature, secret), isValid(changed, signature, secret)]).toEqual([true, false]);
  const verifier = new Webhook(secret);
  expect(verifier.verify(arrived.raw, standardHeaders(arrived))).toEqual(arrived.body);
  expect(() => verifier.verify(changed, standardHeaders(arrived))).toThrow();

  // A secret without the prefix is the key itself. The specified header uses the newest.
  const plain = 'pässword';
  const notifications = [webhook(to.url, { secret: plain })];
  const updated = await client().ok('/policies/update_alert', { rule_id: rule.rule_id, notifications }, AlertRule);
  expect(updated.notifications[0]?.channel_id).toBe(rule.notifications[0]?.channel_id);
  expect(JSON.stringify([rule, updated])).not.toMatch(/whsec_|pässword|k-42/);
  await happen();
  const [, both] = (await to.untilArrived(2)) as [Arrived, Arrived];
  expect(both.headers['x-service-signature']).toBe(hexOf(plain, both));
  expect(String(both.headers['webhook-signature']).split(' ')).toHaveLength(2);
  for (const one of [verifier, new Webhook(Buffer.from(plain), { format: 'raw' })])
    expect(one.verify(both.raw, standardHeaders(both))).toEqual(both.body);

  // An update that does not name the secret keeps it; what was read can be sent back.
  const back = { rule_id: rule.rule_id, notifications: updated.notifications };
  await client().ok('/policies/update_alert', back, AlertRule);
  await happen();
  const again = (await to.untilArrived(3))[2] as Arrived;
  expect(again.headers['x-service-signature']).toBe(hexOf(plain, again));
});

test('a second attempt and a redelivery repeat the bytes under the same delivery_id', async () => {
  const to = await receiver((response, attempt) => status([500, 400][attempt - 1] ?? 200)(response));
  const { rule, happen } = await ruleFor(client(), [webhook(to.url, { secret: 's' })]);
  await happen();
  const [failed] = await untilDelivered(client(), rule.rule_id);
  expect(failed?.status).toBe('failed');
  const delivery_id = failed?.delivery_id;
  await client().ok('/webhooks/redeliver', { delivery_id }, RedeliverResponse);
  await until(async () => (await deliveriesOf(client(), rule.rule_id))[0]?.status === 'delivered');
  expect(new Set(to.arrived.map(({ raw }) => raw.toString())).size).toBe(1);
  expect(to.arrived.map(({ headers }) => headers['webhook-id'])).toEqual(Array(3).fill(delivery_id));
  const [delivered] = await deliveriesOf(client(), rule.rule_id);
  expect(delivered?.attempts.map(({ status_code }) => status_code)).toEqual([500, 400, 200]);
  expect(await client().failure('/webhooks/redeliver', { delivery_id: 'dlv_none' })).toBe('404 NOT_FOUND');
});

test('a deleted rule sends nothing more, not even what was to be tried again', async () => {
  const to = await receiver(status(500));
  const { rule, happen } = await ruleFor(client(), [webhook(to.url)]);
  await happen();
  await to.untilArrived(1);
  expect((await client().post('/policies/delete_alert', { rule_id: rule.rule_id })).body).toEqual({ ok: true });
  await happen();
  const [delivery] = await untilDelivered(client(), rule.rule_id);
  expect(delivery?.status).toBe('dropped');
  expect(to.arrived.length).toBeLessThan(3);
  expect(await client().failure('/policies/delete_alert', { rule_id: rule.rule_id })).toBe('404 NOT_FOUND');
  expect(await client().failure('/policies/test_alert', { rule_id: rule.rule_id })).toBe('404 NOT_FOUND');
});

test('no secret of all this is in the log', () => {
  const log = shared.platform.log();
  expect(log).toContain('a delivery was given up');
  for (const secret of ['whsec_', 'pässword', 'k-42']) expect(log).not.toContain(secret);
});
