import type { Outbound } from '../../http/outbound.js';
import { type Attempted, attemptRequest, type SentDelivery } from '../attempts.js';
import type { PushSecrets } from '../push/push-config-store.js';

/** How a push-notification config is called. */
export interface PushReceiver extends PushSecrets {
  url: string;
  schemes: readonly string[];
}

/**
 * Makes one attempt. Errors of the receiver and of the network are part of the result.
 * @param signal aborts the attempt when this process stops
 * @throws OutboundError ABORTED when the signal aborts; the attempt does not count
 */
export async function attemptPush(
  outbound: Pick<Outbound, 'request'>,
  { url, token, schemes: [scheme], credentials }: PushReceiver,
  { deliveryId, body, traceparent }: SentDelivery,
  signal: AbortSignal,
): Promise<Attempted> {
  const headers = {
    'webhook-id': deliveryId,
    ...(traceparent !== undefined && { traceparent }),
    ...(token && { 'x-a2a-notification-token': token }),
    ...(scheme !== undefined && credentials && { authorization: `${scheme} ${credentials}` }),
  };
  return attemptRequest(outbound, { url, headers, body }, signal);
}
