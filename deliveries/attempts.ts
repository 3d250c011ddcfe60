import { createHash } from 'node:crypto';
import type { ChannelType } from '../contracts/api/alerts.js';
import { type Outbound, OutboundError } from '../http/outbound.js';

export const ATTEMPT_TIMEOUT_MS = 10_000;
/** Of the response only the status counts, and for Slack's API the begin of its JSON. */
const RESPONSE_BYTES = 4_096;
/** The waits between attempts; the last one is for receivers with a fourth attempt. */
const WAITS_MS = [1_000, 5_000, 30_000] as const;
/** Attempts where nothing else is configured. */
export const DEFAULT_ATTEMPTS = 3;

export interface AttemptResult {
  /** Null when no response came. */
  status_code: number | null;
  /** Why there is no valid response: an error code of the outbound client or of the channel. */
  error: string | null;
  duration_ms: number;
}

/** What an attempt says about a delivery: the receiver took it, or will never take it, or may take it later. */
export type AttemptOutcome = 'accepted' | 'refused' | 'unavailable';

/** A delivery to send. */
export interface SentDelivery {
  deliveryId: string;
  /** The bytes of the envelope; of a push notification those of the task, or of the stream response. */
  body: Buffer;
  /** Of the trace that the event belongs to, with the span of its message; webhooks and push notifications pass it on. */
  traceparent?: string;
}

/** An attempt that was made. */
export interface Attempted {
  result: AttemptResult;
  outcome: AttemptOutcome;
}

/** Attempts and ended deliveries of this process so far, by channel, for metrics. */
export interface DeliveryCounts {
  attempts: Record<DeliveryChannel, Record<AttemptOutcome, number>>;
  ended: Record<DeliveryChannel, Record<'delivered' | 'failed', number>>;
}

/** How a delivery goes out; `push` are A2A push notifications. */
export type DeliveryChannel = ChannelType | 'push';

/** All counts at 0. */
export function newDeliveryCounts(): DeliveryCounts {
  const attempts = () => ({ accepted: 0, refused: 0, unavailable: 0 });
  const ended = () => ({ delivered: 0, failed: 0 });
  return {
    attempts: { webhook: attempts(), slack: attempts(), email: attempts(), push: attempts() },
    ended: { webhook: ended(), slack: ended(), email: ended(), push: ended() },
  };
}

export interface AttemptRequest {
  url: string;
  headers: Record<string, string>;
  body: Buffer | string;
}

/**
 * Makes one attempt over HTTP. Errors of the receiver and of the network are part of the result.
 * @param signal aborts the attempt when this process stops
 * @returns the attempt, and the first bytes of the answer
 * @throws OutboundError ABORTED when the signal aborts; the attempt does not count
 */
export async function attemptRequest(
  outbound: Pick<Outbound, 'request'>,
  { url, headers, body }: AttemptRequest,
  signal: AbortSignal,
): Promise<Attempted & { answer: string }> {
  const startedAt = performance.now();
  const attempted = (status_code: number | null, error: string | null, answer: string) => {
    const result = { status_code, error, duration_ms: Math.round(performance.now() - startedAt) };
    return { result, outcome: outcomeOf(result), answer };
  };
  try {
    const response = await outbound.request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      timeoutMs: ATTEMPT_TIMEOUT_MS,
      maxResponseBytes: RESPONSE_BYTES,
      signal,
    });
    return attempted(response.status, null, response.body.toString());
  } catch (error) {
    if (!(error instanceof OutboundError) || error.code === 'ABORTED') throw error;
    return attempted(error.status ?? null, error.code, '');
  }
}

/** Errors that a retry cannot fix. */
const FINAL_ERRORS = new Set(['BAD_URL', 'FORBIDDEN_ADDRESS', 'REDIRECT']);

/** What the result of an attempt over HTTP means: 2xx is success, 4xx and a redirect are final, anything else may pass. */
export function outcomeOf({ status_code: status, error }: AttemptResult): AttemptOutcome {
  if (status !== null && status >= 200 && status < 300) return 'accepted';
  if (status !== null && status >= 400 && status < 500) return 'refused';
  return error !== null && FINAL_ERRORS.has(error) ? 'refused' : 'unavailable';
}

/**
 * Decides what follows an attempt.
 * @param attempt the number of the attempt, from 1
 */
export function verdictOf(
  outcome: AttemptOutcome,
  attempt: number,
  maxAttempts = DEFAULT_ATTEMPTS,
): 'delivered' | 'failed' | 'retry' {
  if (outcome === 'accepted') return 'delivered';
  return outcome === 'refused' || attempt >= maxAttempts ? 'failed' : 'retry';
}

/** The wait before an attempt, in milliseconds. @param attempt the number of the attempt, from 1 */
export function waitBefore(attempt: number): number {
  return WAITS_MS[attempt - 2] ?? 0;
}

/** Scheme, host and port of a URL; '' where there are none. */
export function originOf(url: string): string {
  if (!URL.canParse(url)) return '';
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}`;
}

/**
 * The receiver of deliveries: those to one receiver share slots and a breaker. Each channel is one of its own for each address that it has, so
 * that no failing path of a host holds up another channel. A push notification has no channel: its address without the query is its receiver.
 */
export function receiverOf(url: string, channelId?: string): string {
  const address = channelId === undefined ? url.split('?', 1)[0] : `${channelId} ${url}`;
  const digest = createHash('sha256').update(`${address}`).digest('hex').slice(0, 16);
  return `${originOf(url)} ${digest}`;
}
