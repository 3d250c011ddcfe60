import type { Secrets } from '../runtime/secrets.js';
import { type Attempted, type DeliveryChannel, receiverOf, type SentDelivery } from './attempts.js';
import { type Channel, type ChannelRow, unsealChannel } from './channels/channel-store.js';
import type { ChannelClients } from './channels/clients.js';
import { attemptPush, type PushReceiver } from './channels/push.js';
import { attemptChannel, channelTo, destinationDigest, destinationOf } from './channels/send.js';
import { type PushConfigRow, unsealPushSecrets } from './push/push-config-store.js';

/** Whom a delivery goes to: a channel of an alert rule, or a push-notification config. */
export interface Recipient {
  channel: DeliveryChannel;
  /** What is shown of the address, and the receiver whose slots and breaker count. */
  url: string;
  receiver: string;
  /** The recipient of an email; else ''. */
  mail_to: string;
  /** The digest by which callback tokens know it; null of a push-notification config, which gets none. */
  destination: string | null;
  /** Makes one attempt. @throws OutboundError ABORTED when the signal aborts; the attempt does not count */
  attempt(delivery: SentDelivery, signal: AbortSignal): Promise<Attempted>;
}

/** What is stored of whom a delivery goes to; null where it was removed, or its rule or channel is switched off. */
export interface StoredRecipient {
  channel: Omit<ChannelRow, 'secrets'> | null;
  channel_secrets: Buffer | null;
  /** The recipient of an email; '' of anything else; null where its channel has no recipient for it any more. */
  mail_to: string | null;
  config: Omit<PushConfigRow, 'secrets'> | null;
  config_secrets: Buffer | null;
}

function ofChannel(clients: ChannelClients, whole: Channel, mail_to: string): Recipient {
  const channel = channelTo(whole, mail_to);
  return {
    channel: channel.type,
    ...destinationOf(channel, clients.slackApiUrl),
    mail_to,
    destination: destinationDigest(channel, clients.slackApiUrl),
    attempt: (delivery, signal) => attemptChannel(clients, channel, delivery, signal),
  };
}

function ofConfig({ outbound }: ChannelClients, { url, schemes, ...secrets }: PushReceiver): Recipient {
  return {
    channel: 'push',
    url,
    receiver: receiverOf(url),
    mail_to: '',
    destination: null,
    attempt: (delivery, signal) => attemptPush(outbound, { url, schemes, ...secrets }, delivery, signal),
  };
}

/**
 * Whom a delivery goes to now; null where nobody is to receive it any more.
 * @throws UnreadableValue where no present key opens the secrets
 */
export function recipientOf(
  secrets: Pick<Secrets, 'decrypt'>,
  clients: ChannelClients,
  { channel, channel_secrets, mail_to, config, config_secrets }: StoredRecipient,
): Recipient | null {
  if (channel !== null && mail_to !== null)
    return ofChannel(clients, unsealChannel(secrets, { ...channel, secrets: channel_secrets }), mail_to);
  if (config === null) return null;
  return ofConfig(clients, { ...config, ...unsealPushSecrets(secrets, config_secrets) });
}
