import { signatureHeaders } from '../../http/webhook-signatures.js';
import { type Attempted, attemptRequest, type SentDelivery } from '../attempts.js';
import type { Channel } from './channel-store.js';
import type { ChannelClients } from './clients.js';

/** Posts a delivery to a webhook, signed, with the channel's headers. */
export async function attemptWebhook(
  { outbound }: Pick<ChannelClients, 'outbound'>,
  { config, secrets }: Channel,
  { deliveryId, body, traceparent }: SentDelivery,
  signal: AbortSignal,
): Promise<Attempted> {
  const trace = traceparent !== undefined && { traceparent };
  const headers: Record<string, string> = {
    ...trace,
    ...secrets.headers,
    ...signatureHeaders(secrets, deliveryId, body, Date.now()),
  };
  return attemptRequest(outbound, { url: config.url ?? '', headers, body }, signal);
}
