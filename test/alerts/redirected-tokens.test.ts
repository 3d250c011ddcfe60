import { expect, test } from 'vitest';
import { AlertRule } from '../../contracts/api/alerts.js';
import { receiverOf } from '../../deliveries/attempts.js';
import { serveApi } from '../api/served-api.js';
import { approvalsFixture } from '../messages/approvals/approvals-fixture.js';
import { type Arrived, type Receiver, receiver, status } from '../setup/receiver.js';
import { webhook } from './alert-fixture.js';
import { type Person, recordDeliveries } from './record-deliveries.js';

const api = await serveApi({ sequencer: true });
const { held, outcome, byToken } = await approvalsFixture(api);
const { person, ruleBy, point, attempt, sendQueued, announced, redeliver } = recordDeliveries(api);
const APPROVED = { resolution: 'approved' };

const tokenIn = (arrived: Arrived | undefined) => String(arrived?.body.callback_token);
const lastToken = ({ arrived }: Receiver) => tokenIn(arrived.at(-1));
const approve = (id: string, callback_token: string) => byToken(id, { ...APPROVED, callback_token });

/** A message that waits, and the delivery of it to the receiver of a rule by `owner`. */
async function delivered(owner: Person, terms: Parameters<typeof held>[0] = {}, sender: Person | null = null) {
  const to = await receiver();
  const rule = await ruleBy(owner, [webhook(to.url)]);
  const id = await held(terms, sender?.client);
  const [delivery] = await announced(rule);
  await sendQueued();
  expect(to.arrived).toHaveLength(1);
  return { id, rule, delivery, to, token: lastToken(to) };
}

test('whoever points a channel at himself gets a token of his own, by which he decides nothing that he may not', async () => {
  const [owner, mallory] = [await person('admin'), await person('admin')];
  const { id, rule, delivery, token } = await delivered(owner, { allow_self: false }, mallory);
  const own = await receiver();
  await point(mallory, rule, own.url);
  await redeliver(mallory, delivery);
  await sendQueued();
  const stolen = lastToken(own);
  expect(own.arrived[0]?.body).toMatchObject({ delivery_id: delivery?.delivery_id });
  expect(stolen).toMatch(/^[\w-]{43}$/);
  expect(own.arrived[0]?.raw.toString()).not.toContain(token);
  expect(own.arrived[0]?.body.page_url).toBe(`${api.baseUrl}/approve/${stolen}`);
  expect(await approve(id, token)).toBe('401 unauthorized');
  expect(await approve(id, stolen)).toBe('403 forbidden');
  // Nor when nobody can tell any more who wrote the rule.
  await mallory.client.post('/policies/delete_alert', { rule_id: rule.rule_id });
  expect(await approve(id, stolen)).toBe('403 forbidden');
  expect(await outcome(owner.client, id, APPROVED)).toBe('200 working');
});

test('a token that was issued before somebody wrote the rule is judged by them too', async () => {
  const [owner, mallory] = [await person('admin'), await person('admin')];
  const { id, rule, token } = await delivered(owner, { allow_self: false }, mallory);
  await point(mallory, rule, 'http://127.0.0.1:9/');
  expect(await approve(id, token)).toBe('403 forbidden');

  const second = await delivered(owner, { quorum: 2 });
  expect(await outcome(mallory.client, second.id, APPROVED)).toBe('200 input-required');
  await mallory.client.ok('/policies/update_alert', { rule_id: second.rule.rule_id, approvers: ['U1'] }, AlertRule);
  expect(await approve(second.id, second.token)).toBe('409 ALREADY_RESOLVED');
  expect(await outcome(owner.client, second.id, APPROVED)).toBe('200 working');
});

test('by a channel of somebody else’s rule nobody votes twice', async () => {
  const [owner, mallory] = [await person('full'), await person('admin')];
  const { id, rule, delivery } = await delivered(owner, { quorum: 2 });
  const own = [await receiver(), await receiver()];
  for (const to of own) {
    await point(mallory, rule, to.url);
    await redeliver(mallory, delivery);
    await sendQueued();
  }
  const [first, second] = own.map(lastToken) as [string, string];
  expect(await approve(id, first)).toBe('401 unauthorized');
  expect(await approve(id, second)).toBe('200 input-required');
  expect(await outcome(mallory.client, id, APPROVED)).toBe('409 ALREADY_RESOLVED');
  expect(await outcome((await person('admin')).client, id, APPROVED)).toBe('200 working');
});

test('a retry that waits while the channel is pointed elsewhere goes there with a new token', async () => {
  const [owner, mallory] = [await person('admin'), await person('admin')];
  const to = await receiver(status(503));
  const rule = await ruleBy(owner, [webhook(to.url)]);
  const id = await held({ allow_self: false }, mallory.client);
  await announced(rule);
  const [sent] = await sendQueued();
  const token = lastToken(to);
  expect(sent?.next).toMatchObject({ made: 1 });
  const own = await receiver();
  await point(mallory, rule, own.url);
  if (!sent) throw new Error('nothing was sent');
  expect(await attempt(sent.input, 1)).toBeNull(); // it gives its slot up, and waits for one of the other receiver
  expect(await approve(id, token)).toBe('401 unauthorized');
  await sendQueued();
  await attempt(sent.input, 1);
  expect(own.arrived).toHaveLength(1);
  expect(await approve(id, lastToken(own))).toBe('403 forbidden');
  expect(to.arrived).toHaveLength(1);
  // The one that failed is not taken for the one that answered.
  const failing = await api.database.column('SELECT receiver FROM receiver_breakers');
  const isFailing = ({ url }: Receiver) => failing.includes(receiverOf(url, rule.notifications[0]?.channel_id));
  expect([to, own].map(isFailing)).toEqual([true, false]);
});

test('a receiver that does not answer holds up nothing that goes to the new address of its channel', async () => {
  const owner = await person('admin');
  const { rule, delivery, to } = await delivered(owner);
  const open = `INSERT INTO receiver_breakers (tenant_id, receiver, failures, open_until, opened_at)
    VALUES ($1, $2, 5, now() + interval '1 hour', now())`;
  await api.database.query(open, [api.tenantId, receiverOf(to.url, rule.notifications[0]?.channel_id)]);
  const good = await receiver();
  await point(owner, rule, good.url);
  await redeliver(owner, delivery);
  await sendQueued();
  expect([good.arrived.length, to.arrived.length]).toEqual([1, 1]);
});

test('a process that dies before the attempt leaves what the next one sends: the new token, once issued', async () => {
  const owner = await person('admin');
  const { id, rule, delivery, token } = await delivered(owner);
  const dying = new AbortController();
  const other = await receiver((response, count) => {
    if (count > 1) response.end();
    else dying.abort();
  });
  await point(owner, rule, other.url);
  await redeliver(owner, delivery);
  const input = { ...rule, ...delivery, session_id: '', event_id: '', channel_id: '' } as Parameters<typeof attempt>[0];
  await expect(attempt(input, null, dying.signal)).rejects.toMatchObject({ code: 'ABORTED' });
  await attempt(input, null);
  const [first, second] = other.arrived;
  expect(other.arrived).toHaveLength(2);
  expect(second?.raw.equals(first?.raw as Buffer)).toBe(true);
  expect(tokenIn(first)).not.toBe(token);
  expect(await approve(id, tokenIn(second))).toBe('200 working');
});

/** A delivery that is sent again after its channel was changed. */
async function redelivered(channel: (url: string) => ReturnType<typeof webhook>) {
  const owner = await person('admin');
  const sent = await delivered(owner);
  const { rule, delivery, to } = sent;
  const notifications = [{ ...channel(to.url), channel_id: rule.notifications[0]?.channel_id }];
  await owner.client.ok('/policies/update_alert', { rule_id: rule.rule_id, notifications }, AlertRule);
  await redeliver(owner, delivery);
  await sendQueued();
  return sent;
}

test.each([
  ['nothing changes', (url: string) => webhook(url)],
  ['the signing secret changes', (url: string) => webhook(url, { secret: 'another' })],
])('a redelivery repeats its bytes where %s', async (_what, channel) => {
  const { id, to, token } = await redelivered(channel);
  expect(to.arrived[1]?.raw.equals(to.arrived[0]?.raw as Buffer)).toBe(true);
  expect(await approve(id, token)).toBe('200 working');
});

const FOR_ME = { headers: { to: 'me' } };
test.each([
  ['another path', (url: string) => webhook(`${url}/other`)],
  ['other headers, by which a gateway may choose the receiver', (url: string) => webhook(url, FOR_ME)],
])('%s is another receiver', async (_what, channel) => {
  const { id, to, token } = await redelivered(channel);
  expect(await approve(id, token)).toBe('401 unauthorized');
  expect(await approve(id, lastToken(to))).toBe('200 working');
});

test('each rule about the question gets a token of its own; one of a pattern gets none', async () => {
  const owner = await person('full');
  const asked: Receiver[] = [];
  for (const event of ['message.input_required', 'message.input_required', '*', 'message.*']) {
    const to = await receiver();
    asked.push(to);
    await ruleBy(owner, [webhook(to.url)], event);
  }
  const last = await ruleBy(owner, [webhook('http://127.0.0.1:9/')]);
  await held();
  await announced(last);
  await sendQueued();
  const bodies = asked.map(({ arrived }) => arrived.find(({ body }) => body.type === 'approval_required')?.body);
  const [one, other, ...none] = bodies.map((body) => body?.callback_token);
  expect([one, other]).toEqual(Array(2).fill(expect.stringMatching(/^[\w-]{43}$/)));
  expect(one).not.toBe(other);
  expect([bodies.every(Boolean), none]).toEqual([true, [undefined, undefined]]);
});

test('a channel that is removed and made anew gets nothing of the old one', async () => {
  const [owner, mallory] = [await person('admin'), await person('admin')];
  const { rule, delivery } = await delivered(owner);
  const own = await receiver();
  for (const notifications of [[webhook('http://127.0.0.1:9/')], [webhook(own.url)]])
    await mallory.client.ok('/policies/update_alert', { rule_id: rule.rule_id, notifications }, AlertRule);
  const again = { delivery_id: delivery?.delivery_id };
  expect(await mallory.client.failure('/webhooks/redeliver', again)).toBe('409 CONFLICT');
  await sendQueued();
  expect(own.arrived).toEqual([]);
});

test('a token that was used stays used; whoever its delivery goes to later may answer what is still open', async () => {
  const owner = await person('full');
  const { id, rule, delivery, token } = await delivered(owner, { quorum: 2 });
  expect(await approve(id, token)).toBe('200 input-required');
  const other = await receiver();
  await point(owner, rule, other.url);
  await redeliver(owner, delivery);
  await sendQueued();
  expect(await approve(id, token)).toBe('409 ALREADY_RESOLVED');
  expect(await approve(id, lastToken(other))).toBe('200 working');
});

test('of an answer and a move of its delivery at once, one comes first', async () => {
  const owner = await person('admin');
  // With those of the other tests fewer than the ten wrong tokens that an address may try in a minute.
  for (let round = 0; round < 3; round += 1) {
    const { id, rule, delivery, token } = await delivered(owner, { quorum: 2 });
    const other = await receiver();
    await point(owner, rule, other.url);
    await redeliver(owner, delivery);
    const [answer] = await Promise.all([approve(id, token), sendQueued()]);
    const later = await approve(id, lastToken(other));
    const ends = ['200 input-required, 409 ALREADY_RESOLVED', '401 unauthorized, 200 input-required'];
    expect(ends).toContain([answer, later].join(', '));
    await api.client.post('/messages/cancel', { message_id: id });
  }
});
