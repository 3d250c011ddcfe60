import { LRUCache } from 'lru-cache';
import type { TraceSpan } from '../../contracts/api/telemetry.js';
import { LIMITS } from '../../contracts/limits.js';
import { isDataException } from '../../db/errors.js';
import type { Db } from '../../db/pool.js';
import { errorMessage } from '../../runtime/errors.js';
import { traceFrom } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';
import { isSampled } from './sampling.js';

/** Between two batches, in milliseconds: what a process that is killed has not written yet. */
const INTERVAL_MS = 500;
/** Spans that wait to be written; further ones are dropped. */
const WAITING_MAX = 20_000;
/** Spans of one statement. */
const BATCH = 1_000;
/** Messages whose spans are counted. */
const MESSAGES_MAX = 10_000;

/** A span that nothing else on the record tells of. */
export interface RecordedSpan extends Pick<TraceSpan, 'span_id' | 'name' | 'kind' | 'attributes'> {
  tenant_id: string;
  message_id: string;
  /** Of the trace that it belongs to. */
  traceparent: string;
  parent_span_id: string;
  /** By this process's clock, in milliseconds since 1970. */
  startedAtMs: number;
  endedAtMs: number;
  /** Null where it did not fail. */
  error_type: string | null;
}

/** Takes spans of tool calls and streams. */
export interface SpanRecorder {
  record(span: RecordedSpan): void;
}

/** Spans of this process so far, for metrics. */
export interface SpanCounts {
  /** The collector took them. */
  exported: number;
  /** The collector refused them for good. */
  refused: number;
  /** Of tool calls and streams, beyond what is kept. */
  dropped: number;
  /** Messages and plans whose spans could not be read for the export. */
  unreadable: number;
}

/** Of a message that ended longer ago the exporter may have read what there was (export/trace-exporter.ts). */
const LATE_SECONDS = 1;

/**
 * The lock keeps the erasure of a message from passing by: it deletes the message first, and then its spans. A message that is being erased,
 * or is gone, gets none. Where traces are exported, a span that may have come too late for that is noted.
 */
const INSERT = `
  INSERT INTO trace_spans (tenant_id, message_id, span_id, parent_span_id, name, kind, started_at, ended_at, error_type, attributes, late_at)
  SELECT s.tenant_id, s.message_id, s.span_id, s.parent_span_id, s.name, s.kind, s.started_at, s.ended_at, s.error_type, s.attributes,
         CASE WHEN kept.completed_at < clock_timestamp() - interval '${LATE_SECONDS} seconds'
           AND EXISTS (SELECT 1 FROM trace_exports WHERE tried_at > now() - interval '1 day') THEN now() END
    FROM jsonb_to_recordset($1) AS s (tenant_id text, message_id text, span_id text, parent_span_id text, name text, kind text,
           started_at timestamptz, ended_at timestamptz, error_type text, attributes jsonb)
    JOIN LATERAL (
           SELECT m.completed_at FROM messages m WHERE m.tenant_id = s.tenant_id AND m.message_id = s.message_id FOR KEY SHARE SKIP LOCKED) kept ON true
  ON CONFLICT DO NOTHING`;

/**
 * Writes the spans of this process in batches, apart from the messages: nobody waits for it. They are dropped beyond
 * `LIMITS.spansPerKind` of a message (one more says that there were), while the database is away for long, and of traces that are not sampled, by their callers or by the ratio.
 */
export class SpanWriter implements SpanRecorder {
  readonly #db: Pick<Db, 'system'>;
  readonly #totals: Pick<SpanCounts, 'dropped'>;
  readonly #log: Logger;
  readonly #sampleRatio: number;
  readonly #loop: Loop;
  readonly #counts = new LRUCache<string, number>({ max: MESSAGES_MAX });
  #waiting: RecordedSpan[] = [];

  /** @param sampleRatio the share of traces that are sampled, 0 to 1 */
  constructor(db: Pick<Db, 'system'>, log: Logger, sampleRatio: number, counts: Pick<SpanCounts, 'dropped'>) {
    this.#db = db;
    this.#totals = counts;
    this.#log = log;
    this.#sampleRatio = sampleRatio;
    this.#loop = new Loop({ name: 'spans of traces', intervalMs: INTERVAL_MS, work: () => this.flush(), log });
  }

  start(): void {
    this.#loop.start();
  }

  /** Writes what waits. @throws when the database is away: the spans of the last half second are lost */
  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.flush();
  }

  record(span: RecordedSpan): void {
    const { trace_id, sampled } = traceFrom(span.traceparent, '');
    if (!sampled || !isSampled(trace_id, this.#sampleRatio)) return;
    const count = (this.#counts.get(span.message_id) ?? 0) + 1;
    this.#counts.set(span.message_id, count);
    const isKept = count <= LIMITS.spansPerKind + 1 && this.#waiting.length < WAITING_MAX;
    if (isKept) this.#waiting.push(span);
    else this.#totals.dropped += 1;
  }

  /** Writes all that waits. What fails is tried again with the next turn, except spans that the database refuses: they are dropped. */
  async flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH);
      await this.#write(batch);
      this.#waiting = this.#waiting.slice(batch.length);
    }
  }

  /** Of a batch that is refused the halves are tried, so that no span keeps others from being written. */
  async #write(batch: readonly RecordedSpan[]): Promise<void> {
    const rows = batch.map(({ traceparent: _, startedAtMs, endedAtMs, ...span }) => ({
      ...span,
      started_at: new Date(startedAtMs).toISOString(),
      ended_at: new Date(endedAtMs).toISOString(),
    }));
    try {
      await this.#db.system((tx) => tx.query(INSERT, [JSON.stringify(rows)], 'insert_trace_spans'));
    } catch (error) {
      if (!isDataException(error)) throw error;
      const [one] = batch;
      if (one && batch.length === 1) {
        const { tenant_id, message_id, name } = one;
        this.#log.error({ err: errorMessage(error), tenant_id, message_id, span: name }, 'a span cannot be written');
        this.#totals.dropped += 1;
        return;
      }
      const half = Math.ceil(batch.length / 2);
      await this.#write(batch.slice(0, half));
      await this.#write(batch.slice(half));
    }
  }
}
