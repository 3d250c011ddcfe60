import { expect, test } from 'vitest';
import type { Channel } from '../../deliveries/channels/channel-store.js';
import { attemptChannel, destinationDigest, destinationOf } from '../../deliveries/channels/send.js';
import { createOutbound } from '../../http/outbound.js';
import { cleanUp } from '../setup/clean-up.js';
import { receiver } from '../setup/receiver.js';

const ENVELOPE = {
  ...{ delivery_id: 'dlv_1', event_type: 'message.input_required', timestamp: '2026-11-22T10:00:00.000Z' },
  ...{ tenant_id: 'ten_1', session_id: 'ses_1', severity: 'warning', type: 'approval_required' },
  rule_name: 'Ask <!channel> & co',
  event: { message_id: 'msg_1', request_id: 'req_1', kind: 'confirmation', title: 'Go on?' },
  ...{ request_id: 'req_1', digest: '0'.repeat(64) },
};
const URL_OF = 'https://example.com/a';
const email = { smtpUrl: undefined, from: 'fleet@example.com' };

function channelOf(type: Channel['type'], config: Channel['config'], secrets: Channel['secrets'] = {}): Channel {
  return { channel_id: 'chn_1', rule_id: 'rule_1', enabled: true, type, config, secrets };
}

const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
cleanUp(() => outbound.close());

function attempt(channel: Channel, { slackApiUrl = 'https://slack.com/api', envelope = ENVELOPE as object } = {}) {
  const delivery = { deliveryId: 'dlv_1', body: Buffer.from(JSON.stringify(envelope)) };
  return attemptChannel({ outbound, slackApiUrl, email }, channel, delivery, new AbortController().signal);
}

test('a Slack bot posts with its token, and its API refuses with 200', async () => {
  const to = await receiver((response, count) => {
    response.end(JSON.stringify(count === 1 ? { ok: true } : { ok: false, error: 'channel_not_found' }));
  });
  const channel = channelOf('slack', { channel_id: 'C1' }, { bot_token: 'xoxb-1', signing_secret: 's' });
  expect(await attempt(channel, { slackApiUrl: to.url })).toMatchObject({ outcome: 'accepted' });
  const [first] = to.arrived;
  expect(first?.headers.authorization).toBe('Bearer xoxb-1');
  expect(first?.body).toMatchObject({ channel: 'C1', text: 'Ask &lt;!channel&gt; &amp; co: Go on?' });
  expect(JSON.stringify(first?.body)).toContain('resolve:approved');
  const refused = await attempt(channel, { slackApiUrl: to.url });
  expect(refused).toMatchObject({ outcome: 'refused', result: { error: 'SLACK_CHANNEL_NOT_FOUND' } });
});

test('what an agent asks makes no links, mentions or further fields in Slack', async () => {
  const to = await receiver();
  const title = '<!here> <https://evil.example|ok> @channel\n*request_id*: req_2';
  const envelope = { ...ENVELOPE, event: { ...ENVELOPE.event, title } };
  await attempt(channelOf('slack', {}, { webhook_url: to.url }), { envelope });
  interface Block {
    text?: { type: string; text: string; verbatim?: boolean };
    elements?: { type: string; text: string; verbatim?: boolean }[];
  }
  const { blocks } = (to.arrived[0]?.body ?? {}) as unknown as { blocks: Block[] };
  const texts = blocks.flatMap(({ text, elements = [] }) => [...(text ? [text] : []), ...elements]);
  const markdown = texts.filter(({ type }) => type === 'mrkdwn');
  expect(markdown.length).toBeGreaterThan(2);
  for (const { text, verbatim } of markdown) expect([text.includes('<'), verbatim]).toEqual([false, true]);
  const lines = blocks.flatMap(({ text }) => text?.text.split('\n') ?? []);
  expect(lines.filter((line) => line.startsWith('*request'))).toEqual(['*request_id*: req_1']);
});

test('long texts are cut to what Slack takes: whole characters, entities and fields', async () => {
  const to = await receiver();
  const fields = Object.fromEntries(Array.from({ length: 9 }, (_, nth) => [`field_${nth}`, '&'.repeat(120 * nth)]));
  const event = { ...ENVELOPE.event, ...fields, title: `${'x'.repeat(499)}😀` };
  const envelope = { ...ENVELOPE, rule_name: `${'r'.repeat(149)}😀`, event };
  await attempt(channelOf('slack', {}, { webhook_url: to.url }), { envelope });
  const [arrived] = to.arrived;
  expect(arrived?.raw.toString()).not.toMatch(/\\ud[89a-f]/i);
  const { blocks } = (arrived?.body ?? {}) as unknown as { blocks: { type: string; text?: { text: string } }[] };
  const texts = blocks.map(({ text }) => text?.text ?? '');
  expect(texts[0]?.length).toBeLessThanOrEqual(150);
  for (const text of texts) {
    expect(text.length).toBeLessThanOrEqual(3_000);
    expect(text.replaceAll('&amp;', '')).not.toContain('&');
  }
  expect(texts.join()).toContain('field_2');
});

test.each([
  ['a form with a token has the link alone', { kind: 'form' }, 'T', ['Open the form']],
  ['a form without a token, as of a rule with *, has nothing', { kind: 'form' }, undefined, undefined],
  ['a question with a token has the link beside its answers', {}, 'T', ['Approve', 'Reject', 'Show everything']],
  ['a question without a token has its answers alone', {}, undefined, ['Approve', 'Reject']],
  ['a question has nothing without a signing secret: its answers could not be verified', {}, undefined, undefined, ''],
])('in Slack %s, and nobody reads a token', async (_what, asked, token, buttons, signing_secret = 's') => {
  const to = await receiver();
  const envelope = {
    ...ENVELOPE,
    event: { ...ENVELOPE.event, ...asked },
    ...(token && { callback_token: token.repeat(43) }),
    resolve_url: 'https://fleet.example/messages/msg_1/resolve',
  };
  const secrets = { webhook_url: to.url, ...(signing_secret && { signing_secret }) };
  await attempt(channelOf('slack', {}, secrets), { envelope });
  type Block = { type: string; elements: { text: { text: string } }[] };
  const { blocks } = (to.arrived[0]?.body ?? {}) as unknown as { blocks: Block[] };
  const actions = blocks.find(({ type }) => type === 'actions');
  expect(actions?.elements.map(({ text }) => text.text)).toEqual(buttons);
  expect(to.arrived[0]?.raw.toString()).not.toContain('TTT');
});

const SLACK = 'https://hooks.slack.com';
test.each([
  ['webhook', { url: 'https://example.com:8443/a?b' }, {}, 'https://example.com:8443/a?b', 'https://example.com:8443'],
  ['slack', {}, { webhook_url: `${SLACK}/services/T/B/secret` }, SLACK, SLACK],
  ['slack', { channel_id: 'C1' }, { bot_token: 'x' }, 'https://slack.com/C1', 'https://slack.com'],
  ['email', { recipients: ['a@example.com', 'b@example.com'] }, {}, 'mailto:a@example.com,b@example.com', 'smtp://'],
] as const)('a %s channel with %j is shown as %s', (type, config, secrets, url, to) => {
  const channel = channelOf(type, config as Channel['config'], secrets);
  const { receiver: name, ...shown } = destinationOf(channel, 'https://slack.com/api');
  expect(shown).toEqual({ url });
  expect(name.split(' ')).toEqual([to, expect.stringMatching(/^[0-9a-f]{16}$/)]);
});

test('each channel is a receiver of its own, and another one when its path changes', () => {
  const of = (channel_id: string, url: string) =>
    destinationOf({ ...channelOf('webhook', { url }), channel_id }, '').receiver;
  expect(of('chn_a', URL_OF)).toBe(of('chn_a', URL_OF));
  expect(new Set([of('chn_a', URL_OF), of('chn_b', URL_OF), of('chn_a', `${URL_OF}/b`)]).size).toBe(3);
});

const hook = (url: string, secrets: Channel['secrets'] = {}) => channelOf('webhook', { url }, secrets);
const slack = (secrets: Channel['secrets']) => channelOf('slack', { channel_id: 'C1' }, secrets);
const mail = (recipient: string) => channelOf('email', { recipients: [recipient] });
const OTHER = `${URL_OF}/b`;
const [SOME, SWAPPED] = [{ headers: { a: '1', b: '2' } }, { headers: { b: '2', a: '1' } }];

test.each<[same: boolean, what: string, Channel, Channel]>([
  [true, 'a webhook with another secret', hook(URL_OF), hook(URL_OF, { secret: 's' })],
  [false, 'a webhook with another path', hook(URL_OF), hook(OTHER)],
  [false, 'a webhook with a header', hook(URL_OF), hook(URL_OF, { headers: { a: 'b' } })],
  [true, 'a webhook with its headers in another order', hook(URL_OF, SOME), hook(URL_OF, SWAPPED)],
  [false, 'a Slack channel in another workspace', slack({ bot_token: 'one' }), slack({ bot_token: 'other' })],
  [false, 'another Slack webhook', slack({ webhook_url: URL_OF }), slack({ webhook_url: OTHER })],
  [true, 'another signing secret', slack({ webhook_url: URL_OF }), slack({ webhook_url: URL_OF, signing_secret: 's' })],
  [true, 'an email in capitals', mail('a@example.com'), mail('A@Example.com')],
  [false, 'another recipient', mail('a@example.com'), mail('b@example.com')],
])('is the same destination (%s): %s', (same, _what, one, other) => {
  const digestOf = (channel: Channel) => destinationDigest(channel, 'https://slack.com/api');
  expect(digestOf(one) === digestOf(other)).toBe(same);
});
