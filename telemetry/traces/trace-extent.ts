import type { TraceSummary } from '../../contracts/api/telemetry.js';
import { LIMITS } from '../../contracts/limits.js';
import type { TracePart } from './derive.js';

/** From when to when a trace lasts, and how many spans it has: of its parts, one after the other, so that none is kept. */
export class TraceExtent {
  #startMs = Number.POSITIVE_INFINITY;
  #endMs = Number.NEGATIVE_INFINITY;
  #isRunning = false;
  #count = 0;
  #isTruncated = false;

  add({ course, count, isTruncated }: TracePart): void {
    for (const { start, end } of course) {
      this.#startMs = Math.min(this.#startMs, start.getTime());
      this.#endMs = Math.max(this.#endMs, (end ?? start).getTime());
      this.#isRunning ||= end === null;
    }
    this.#count += count;
    this.#isTruncated ||= isTruncated;
  }

  /** @param hasMore whether the trace has further messages, which were not added */
  summary(
    hasMore: boolean,
  ): Pick<TraceSummary, 'started_at' | 'ended_at' | 'duration_ms' | 'span_count' | 'truncated'> {
    const [start, end] = [new Date(this.#startMs), this.#isRunning ? null : new Date(this.#endMs)];
    const isTruncated = hasMore || this.#isTruncated || this.#count > LIMITS.spansPerTrace;
    return {
      started_at: start.toISOString(),
      ended_at: end?.toISOString() ?? null,
      duration_ms: end && end.getTime() - start.getTime(),
      span_count: Math.min(this.#count, LIMITS.spansPerTrace),
      ...(isTruncated && { truncated: true as const }),
    };
  }
}
