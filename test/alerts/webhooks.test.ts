import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { beforeAll, expect, test } from 'vitest';
import { AlertRule, TestAlertResponse } from '../../contracts/api/alerts.js';
import { RedeliverResponse } from '../../contracts/api/deliveries.js';
import { httpServer, tcpServer } from '../runtime/loopback-server.js';
import { documentedBlock } from '../setup/documented-block.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { type Arrived, receiver, status } from '../setup/receiver.js';
import { until } from '../setup/until.js';
import { deliveriesOf, ruleFor, untilDelivered, webhook } from './alert-fixture.js';

/** Everything that a receiver may find hard: no ASCII, an astral character, a line separator, quotes. */
const UNICODE = 'Zürich „😀" \u2028 "q" \\';

let shared: SharedPlatform;
/** What takes long goes on while the other tests run, and is looked at by its own. */
const failing = await receiver((response, attempt) => status(attempt < 4 ? 503 : 200)(response));
const lateAtFirst = await receiver((response, attempt) => {
  if (attempt > 1) response.end();
  else setTimeout(() => response.end(), 11_000); // a 200, but too late
});
let failingRule: AlertRule;
let lateRule: AlertRule;
beforeAll(async () => {
  shared = await startPlatform();
  failingRule = await begun([webhook(failing.url, { max_attempts: 4 })]);
  lateRule = await begun([webhook(lateAtFirst.url)]);
  return shared.dispose;
});
const client = () => shared.platform.client;

/** A rule whose event has happened. */
async function begun(notifications: object[]): Promise<AlertRule> {
  const { rule, happen } = await ruleFor(client(), notifications);
  await happen();
  return rule;
}

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
  });
});

test('always 500 is three attempts with the same id and bytes, 1 s and 5 s apart', async () => {
  const at: number[] = [];
  const to = await receiver((response) => {
    at.push(performance.now());
    status(500)(response);
  });
  const { rule, happen } = await ruleFor(client(), [webhook(to.url)]);
  await happen();
  const [delivery] = await untilDelivered(client(), rule.rule_id);
  expect(delivery).toMatchObject({ status: 'failed', attempts: Array(3).fill({ status_code: 500, success: false }) });
  expect(new Set(to.arrived.map(({ raw }) => raw.toString())).size).toBe(1);
  expect(new Set(to.arrived.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  const [first = 0, second = 0, third = 0] = at;
  expect(second - first).toBeGreaterThan(900);
  expect(third - second).toBeGreaterThan(4_900);
  expect(to.arrived).toHaveLength(3);
});

test('500 then 200 is delivered at the second attempt', async () => {
  const to = await receiver((response, attempt) => status(attempt === 1 ? 500 : 200)(response));
  const { rule, happen } = await ruleFor(client(), [webhook(to.url)]);
  await happen();
  const [delivery] = await untilDelivered(client(), rule.rule_id);
  expect(delivery?.status).toBe('delivered');
  expect(delivery?.attempts.map(({ status_code, success }) => [status_code, success])).toEqual([
    [500, false],
    [200, true],
  ]);
});

test.each([400, 404, 429])('%s is one attempt', async (code) => {
  const to = await receiver(status(code));
  const { rule, happen } = await ruleFor(client(), [webhook(to.url)]);
  await happen();
  const [delivery] = await untilDelivered(client(), rule.rule_id);
  expect(delivery).toMatchObject({ status: 'failed', attempts: [{ status_code: code, success: false }] });
  expect(to.arrived).toHaveLength(1);
});

test('302: the target is not touched', async () => {
  const target = await receiver();
  const to = await receiver((response) => response.writeHead(302, { location: target.url }).end());
  const { rule, happen } = await ruleFor(client(), [webhook(to.url)]);
  await happen();
  const [delivery] = await untilDelivered(client(), rule.rule_id);
  expect(delivery).toMatchObject({ status: 'failed', attempts: [{ status_code: 302, error: 'REDIRECT' }] });
  expect(target.arrived).toEqual([]);
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

test('the signature is over the raw bytes: Node, Python and standardwebhooks agree, and one changed byte is refused', async () => {
  const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`;
  const to = await receiver();
  const { happen } = await ruleFor(client(), [webhook(to.url, { secret })], { name: UNICODE });
  await happen();
  const [arrived] = (await to.untilArrived(1)) as [Arrived];
  expect(arrived.body.rule_name).toBe(UNICODE);
  const signature = String(arrived.headers['x-service-signature']);
  expect(signature).toBe(hexOf(secret, arrived));
  const changed = Buffer.from(arrived.raw);
  changed[changed.length - 2] = 0x20;
  for (const isValid of [await documentedJs(), documentedPython])
    expect([isValid(arrived.raw, signature, secret), isValid(changed, signature, secret)]).toEqual([true, false]);
  const verifier = new Webhook(secret);
  expect(verifier.verify(arrived.raw, standardHeaders(arrived))).toEqual(arrived.body);
  expect(() => verifier.verify(changed, standardHeaders(arrived))).toThrow();
});

test('a secret without prefix is the key itself, and configured headers are sent', async () => {
  const to = await receiver();
  const secret = 'pässword';
  const { happen, rule } = await ruleFor(client(), [webhook(to.url, { secret, headers: { 'X-Api-Key': 'k-42' } })]);
  await happen();
  const [arrived] = (await to.untilArrived(1)) as [Arrived];
  expect(arrived.headers['x-service-signature']).toBe(hexOf(secret, arrived));
  expect(arrived.headers['x-api-key']).toBe('k-42');
  new Webhook(Buffer.from(secret), { format: 'raw' }).verify(arrived.raw, standardHeaders(arrived));
  const [channel] = rule.notifications;
  expect(channel).toMatchObject({ config: { url: to.url }, secrets_set: ['secret', 'headers.X-Api-Key'] });
  expect(JSON.stringify(rule)).not.toMatch(/pässword|k-42/);
});

test('after a rotation webhook-signature carries both, and the specified header uses the newest', async () => {
  const to = await receiver();
  const { rule, happen } = await ruleFor(client(), [webhook(to.url, { secret: 'old-secret' })]);
  const notifications = [webhook(to.url, { secret: 'new-secret' })];
  const updated = await client().ok('/policies/update_alert', { rule_id: rule.rule_id, notifications }, AlertRule);
  expect(updated.notifications[0]?.channel_id).toBe(rule.notifications[0]?.channel_id);
  await happen();
  const [arrived] = (await to.untilArrived(1)) as [Arrived];
  expect(arrived.headers['x-service-signature']).toBe(hexOf('new-secret', arrived));
  expect(String(arrived.headers['webhook-signature']).split(' ')).toHaveLength(2);
  for (const secret of ['old-secret', 'new-secret'])
    new Webhook(Buffer.from(secret), { format: 'raw' }).verify(arrived.raw, standardHeaders(arrived));
  // An update that does not name the secret keeps it; what was read can be sent back.
  const back = { rule_id: rule.rule_id, notifications: updated.notifications };
  await client().ok('/policies/update_alert', back, AlertRule);
  await happen();
  const [, again] = (await to.untilArrived(2)) as [Arrived, Arrived];
  expect(again.headers['x-service-signature']).toBe(hexOf('new-secret', again));
});

test('a redelivery repeats the bytes under the same delivery_id', async () => {
  const to = await receiver((response, attempt) => status(attempt === 1 ? 400 : 200)(response));
  const { rule, happen } = await ruleFor(client(), [webhook(to.url, { secret: 's' })]);
  await happen();
  const [failed] = await untilDelivered(client(), rule.rule_id);
  expect(failed?.status).toBe('failed');
  const delivery_id = failed?.delivery_id;
  await client().ok('/webhooks/redeliver', { delivery_id }, RedeliverResponse);
  await until(async () => (await deliveriesOf(client(), rule.rule_id))[0]?.status === 'delivered');
  const [first, second] = to.arrived as [Arrived, Arrived];
  expect(second.raw.equals(first.raw)).toBe(true);
  expect(second.headers['webhook-id']).toBe(delivery_id);
  const [delivered] = await deliveriesOf(client(), rule.rule_id);
  expect(delivered?.attempts.map(({ status_code }) => status_code)).toEqual([400, 200]);
  expect(await client().failure('/webhooks/redeliver', { delivery_id: 'dlv_none' })).toBe('404 NOT_FOUND');
});

test('an endless answer counts by its status, and is not read to its end', async () => {
  let written = 0;
  const server = await httpServer((request, response) => {
    request.resume();
    const more = () => {
      while (response.write('x'.repeat(65_536))) written += 65_536;
    };
    response.on('drain', more);
    more();
  });
  const { rule, happen } = await ruleFor(client(), [webhook(`${server.url}/hook`)]);
  await happen();
  const [delivery] = await untilDelivered(client(), rule.rule_id);
  expect(delivery).toMatchObject({ status: 'delivered', attempts: [{ status_code: 200, success: true }] });
  expect(written).toBeLessThan(50 * 1024 * 1024);
});

test.each([
  'http://10.0.0.1/hook',
  'http://2886729729/hook', // 172.16.0.1 in decimal
  'http://[::ffff:a00:1]/hook',
  'http://[::7f00:1]/hook',
  'http://[fd00::1]/hook',
  'http://169.254.169.254/latest/meta-data',
  'http://user:password@example.com/hook',
  'file:///etc/passwd',
  'gopher://example.com/',
  'not a url',
])('%s is refused when the rule is created', async (url) => {
  const body = { name: 'x', condition: { event: 'agent.registered' }, notifications: [webhook(url)] };
  const answer = await client().post('/policies/new_alert', body);
  expect(answer).toMatchObject({ status: 400, body: { code: 'BAD_REQUEST' } });
  expect(JSON.stringify(answer.body)).toContain('notifications');
});

test('test_alert sends to every channel and says what came of it; nothing is logged', async () => {
  const to = await receiver();
  const broken = await receiver(status(500));
  const closed = await tcpServer((socket) => socket.destroy());
  const channels = [webhook(to.url), webhook(broken.url), webhook(`${closed.url}/x`), { ...email, enabled: false }];
  const { rule } = await ruleFor(client(), channels);
  const { results } = await client().ok('/policies/test_alert', { rule_id: rule.rule_id }, TestAlertResponse);
  expect(results.map(({ type, ok }) => [type, ok])).toEqual([
    ['webhook', true],
    ['webhook', false],
    ['webhook', false],
    ['email', false],
  ]);
  expect(results.map(({ message }) => message).join()).toMatch(/answered 500.*SMTP_URL/s);
  expect(to.arrived[0]?.body).toMatchObject({ type: 'alert', rule_name: rule.name });
  expect(await deliveriesOf(client(), rule.rule_id)).toEqual([]);
});
const email = { type: 'email', config: { recipients: ['ops@example.com'] } };

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

test('a 200 after 11 s is a timeout, which is tried again', async () => {
  const [delivery] = await untilDelivered(client(), lateRule.rule_id, 1, 60_000);
  expect(delivery).toMatchObject({
    status: 'delivered',
    attempts: [
      { status_code: null, success: false, error: 'TIMEOUT' },
      { status_code: 200, success: true },
    ],
  });
  expect(delivery?.attempts[0]?.response_time_ms).toBeGreaterThanOrEqual(9_900);
});

test('a channel with max_attempts 4 gets a fourth attempt', async () => {
  const [delivery] = await untilDelivered(client(), failingRule.rule_id, 1, 90_000);
  expect(delivery?.status).toBe('delivered');
  expect(delivery?.attempts.map(({ status_code }) => status_code)).toEqual([503, 503, 503, 200]);
});

test('no secret of all this is in the log', () => {
  const log = shared.platform.log();
  expect(log).toContain('a delivery was given up');
  for (const secret of ['whsec_', 'new-secret', 'pässword', 'k-42']) expect(log).not.toContain(secret);
});
