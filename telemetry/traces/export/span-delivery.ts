import type { Logger } from '../../../runtime/logger.js';
import type { SpanCounts } from '../span-recorder.js';
import type { Collector, Later } from './collector.js';
import type { ExportedSpan } from './otlp.js';

/** Requests for one batch of spans: enough to find two bad ones among 500. */
const REQUESTS_MAX = 40;

export interface SpanDeliveryOptions {
  collector: Pick<Collector, 'send'>;
  log: Pick<Logger, 'error'>;
  counts: Pick<SpanCounts, 'exported' | 'refused'>;
  /** Called before each further request: all of them may take minutes. */
  keepLease: () => Promise<void>;
}

/**
 * Sends spans in one request. What the collector refuses, because it is too large or one span in it is bad, is sent again in halves, so that
 * only what it will never take is dropped, with a line in the log. Of a batch of which nothing is taken it is the collector's own fault that
 * it answers 5xx: that is an outage.
 * @returns when the collector is away: all are to be sent again. Undefined when they are done with
 */
export async function deliver(
  { collector, log, counts, keepLease }: SpanDeliveryOptions,
  spans: ExportedSpan[],
  signal: AbortSignal,
): Promise<Later | undefined> {
  const waiting = [spans];
  let requests = 0;
  let exported = 0;
  let refused = 0;
  let reason: string | undefined;
  let isFault = false;
  for (let part = waiting.shift(); part; part = waiting.shift()) {
    if (requests > 0) await keepLease();
    const delivery = await collector.send(part, signal);
    requests += 1;
    // So many requests at once may be why: the next batch is smaller.
    if (delivery.kind === 'later') return requests > 1 ? { ...delivery, mayBeTooMuch: true } : delivery;
    if (delivery.kind === 'taken') {
      exported += part.length - delivery.rejected;
      refused += delivery.rejected;
      if (delivery.rejected > 0) reason = delivery.reason;
    } else if (part.length > 1 && requests + waiting.length + 2 <= REQUESTS_MAX) {
      const half = Math.ceil(part.length / 2);
      waiting.push(part.slice(0, half), part.slice(half));
    } else {
      refused += part.length;
      ({ reason, isFault } = delivery);
    }
  }
  if (isFault && exported === 0) return { kind: 'later', reason: reason ?? '', afterMs: 0, mayBeTooMuch: false };
  counts.exported += exported;
  counts.refused += refused;
  if (refused > 0) log.error({ reason, spans: refused, exported }, 'the collector refused spans for good');
  return undefined;
}
