import { type Outbound, OutboundError } from '../http/outbound.js';
import type { PushSecrets } from './push-config-store.js';
import type { AttemptResult } from './push-deliveries.js';

/** The timeout of one attempt (specification section 6, Outbound webhooks). */
const ATTEMPT_TIMEOUT_MS = 10_000;
/** Only the status of the response counts. */
const RESPONSE_BYTES = 4_096;
/** The waits between attempts (specification section 6): three attempts in all. */
const WAITS_MS = [1_000, 5_000] as const;

/** A push notification to send. */
export interface Notification extends PushSecrets {
  url: string;
  schemes: readonly string[];
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
 * Makes one attempt. Errors of the receiver and of the network are part of the result.
 * @param signal aborts the attempt when this process stops
 * @throws OutboundError ABORTED when the signal aborts; the attempt does not count
 */
export async function attemptPush(
  outbound: Pick<Outbound, 'request'>,
  notification: Notification,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const startedAt = performance.now();
  const result = (status_code: number | null, error: string | null): AttemptResult => ({
    status_code,
    error,
    duration_ms: Math.round(performance.now() - startedAt),
  });
  try {
    const response = await outbound.request(notification.url, {
      method: 'POST',
      headers: headersOf(notification),
      body: JSON.stringify(notification.body),
      timeoutMs: ATTEMPT_TIMEOUT_MS,
      maxResponseBytes: RESPONSE_BYTES,
      signal,
    });
    return result(response.status, null);
  } catch (error) {
    if (!(error instanceof OutboundError) || error.code === 'ABORTED') throw error;
    return result(error.status ?? null, error.code);
  }
}

/** Errors that a retry cannot fix. */
const FINAL_ERRORS = new Set(['BAD_URL', 'FORBIDDEN_ADDRESS', 'REDIRECT']);

/**
 * Decides what follows an attempt (specification section 6): 2xx is success, 4xx and a redirect fail at once, anything else is retried.
 * @param attempt the number of the attempt, from 1
 */
export function verdictOf(result: AttemptResult, attempt: number): 'delivered' | 'failed' | 'retry' {
  const { status_code: status, error } = result;
  if (status !== null && status >= 200 && status < 300) return 'delivered';
  if (status !== null && status >= 400 && status < 500) return 'failed';
  if (error !== null && FINAL_ERRORS.has(error)) return 'failed';
  return attempt > WAITS_MS.length ? 'failed' : 'retry';
}

/** The wait before an attempt, in milliseconds. @param attempt the number of the attempt, from 1 */
export function waitBefore(attempt: number): number {
  return WAITS_MS[attempt - 2] ?? 0;
}
