import { createHash } from 'node:crypto';
import { type Attempted, originOf, receiverOf, type SentDelivery } from '../attempts.js';
import type { Channel } from './channel-store.js';
import type { ChannelClients } from './clients.js';
import { attemptEmail } from './email.js';
import { attemptSlack, slackUrl } from './slack.js';
import { attemptWebhook } from './webhook.js';

/** Where a channel delivers to: what is shown of it, and its receiver. */
export function destinationOf(channel: Channel, slackApiUrl: string): { url: string; receiver: string } {
  const { type, config, channel_id: id } = channel;
  switch (type) {
    case 'webhook':
      return { url: config.url ?? '', receiver: receiverOf(config.url ?? '', id) };
    case 'slack': {
      // The path of an incoming webhook is a secret.
      const url = slackUrl(channel, slackApiUrl);
      const origin = originOf(url);
      return { url: config.channel_id ? `${origin}/${config.channel_id}` : origin, receiver: receiverOf(url, id) };
    }
    case 'email':
      // All emails of a channel share the mail server.
      return { url: `mailto:${config.recipients?.join(',')}`, receiver: receiverOf('smtp:', id) };
    default:
      return type satisfies never;
  }
}

/** What decides who gets what a channel sends. The signing secret of a webhook does not: whoever has it is sent nothing by it. */
function addressOf({ type, config, secrets }: Channel, slackApiUrl: string): unknown[] {
  switch (type) {
    case 'webhook':
      return [type, config.url, ...Object.entries(secrets.headers ?? {}).sort()];
    case 'slack':
      return [type, slackUrl({ secrets }, slackApiUrl), secrets.bot_token, config.channel_id];
    case 'email':
      return [type, ...(config.recipients ?? []).map((recipient) => recipient.toLowerCase())];
    default:
      return type satisfies never;
  }
}

/** Tells destinations of channels apart, secrets of their addresses included, without naming them. */
export function destinationDigest(channel: Channel, slackApiUrl: string): string {
  return createHash('sha256')
    .update(JSON.stringify(addressOf(channel, slackApiUrl)))
    .digest('hex');
}

/** The mails of a channel: one for each recipient, so that each has a token of their own and gets no mail again because of another. Else `['']`. */
export function mailsOf({ type, config }: Pick<Channel, 'type' | 'config'>): string[] {
  return type === 'email' ? [...new Set(config.recipients)] : [''];
}

/** A channel as one of its deliveries uses it. @param mailTo the one recipient of an email; else '' */
export function channelTo(channel: Channel, mailTo: string): Channel {
  return mailTo === '' ? channel : { ...channel, config: { ...channel.config, recipients: [mailTo] } };
}

/**
 * Makes one attempt to send a delivery over its channel. Errors of the receiver and of the network are part of the result.
 * @throws OutboundError ABORTED when the signal aborts; the attempt does not count
 */
export async function attemptChannel(
  clients: ChannelClients,
  channel: Channel,
  delivery: SentDelivery,
  signal: AbortSignal,
): Promise<Attempted> {
  const { type } = channel;
  switch (type) {
    case 'webhook':
      return attemptWebhook(clients, channel, delivery, signal);
    case 'slack':
      return attemptSlack(clients, channel, delivery.body, signal);
    case 'email':
      return attemptEmail(clients.email, channel, delivery.body, signal);
    default:
      return type satisfies never;
  }
}
