import { type Outbound, OutboundError } from '../http/outbound.js';
import type { AttemptResult } from './push-deliveries.js';

/** For one attempt, from the first byte to the answer (specification section 6, Outbound webhooks). */
const ATTEMPT_TIMEOUT_MS = 10_000;
/** Of the answer only the status counts. */
const ANSWER_BYTES = 4_096;
/** Between attempts (specification section 6); one more is made than there are waits. */
const WAITS_MS = [1_000, 5_000] as const;

/** A push notification, ready to be sent. */
export interface Notification {
  url: string;
  token?: string | undefined;
  schemes: readonly string[];
  credentials?: string | undefined;
  body: unknown;
}

function headersOf({ token, schemes: [scheme], credentials }: Notification): Record<string, string> {
  return {
    'content-type': 'application/json',
    ...(token && { 'x-a2a-notification-token': token }),
    ...(scheme !== undefined && credentials && { authorization: `${scheme} ${credentials}` }),
  };
}

/**
 * Makes one attempt. What the receiver or the way to it does wrong is part of the result.
 * @param signal ends the attempt when this process stops
 * @throws OutboundError ABORTED then: the attempt does not count
 */
export async function attemptPush(
  outbound: Pick<Outbound, 'request'>,
  notification: Notification,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const from = performance.now();
  const result = (status_code: number | null, error: string | null): AttemptResult => ({
    status_code,
    error,
    duration_ms: Math.round(performance.now() - from),
  });
  try {
    const answer = await outbound.request(notification.url, {
      method: 'POST',
      headers: headersOf(notification),
      body: JSON.stringify(notification.body),
      timeoutMs: ATTEMPT_TIMEOUT_MS,
      maxResponseBytes: ANSWER_BYTES,
      signal,
    });
    return result(answer.status, null);
  } catch (error) {
    if (!(error instanceof OutboundError) || error.code === 'ABORTED') throw error;
    return result(error.status ?? null, error.code);
  }
}

/** Trying again would not help. */
const FINAL_ERRORS = new Set(['BAD_URL', 'FORBIDDEN_ADDRESS', 'REDIRECT']);

/**
 * What follows from an attempt (specification section 6): 2xx is success, 4xx and a redirect end it at once, anything else is tried again.
 * @param attempt its number, from 1
 */
export function verdictOf(result: AttemptResult, attempt: number): 'delivered' | 'failed' | 'again' {
  const { status_code: status, error } = result;
  if (status !== null && status >= 200 && status < 300) return 'delivered';
  if (status !== null && status >= 400 && status < 500) return 'failed';
  if (error !== null && FINAL_ERRORS.has(error)) return 'failed';
  return attempt > WAITS_MS.length ? 'failed' : 'again';
}

/** How long to wait before an attempt, in milliseconds. @param attempt its number, from 1 */
export function waitBefore(attempt: number): number {
  return WAITS_MS[attempt - 2] ?? 0;
}
