import type { Outbound } from '../http/outbound.js';
import { type AttemptResult, attemptRequest } from './attempts.js';
import type { PushSecrets } from './push-config-store.js';

/** A push notification to send. */
export interface Notification extends PushSecrets {
  url: string;
  schemes: readonly string[];
  body: unknown;
  /** With the span of the message that it is about. */
  traceparent: string;
}

function headersOf({ token, schemes: [scheme], credentials, traceparent }: Notification): Record<string, string> {
  return {
    traceparent,
    ...(token && { 'x-a2a-notification-token': token }),
    ...(scheme !== undefined && credentials && { authorization: `${scheme} ${credentials}` }),
  };
}

/**
 * Makes one attempt. Errors of the receiver and of the network are part of the result.
 * @param signal aborts the attempt when this process stops
 * @throws OutboundError ABORTED when the signal aborts; the attempt does not count
 */
export async function attemptPush(
  outbound: Pick<Outbound, 'request'>,
  notification: Notification,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const { url } = notification;
  const request = { url, headers: headersOf(notification), body: JSON.stringify(notification.body) };
  return (await attemptRequest(outbound, request, signal)).result;
}
