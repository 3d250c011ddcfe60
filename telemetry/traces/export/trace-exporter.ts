import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { isDataException, isTimedOut, isUndone } from '../../../db/errors.js';
import type { Db } from '../../../db/pool.js';
import type { Clocks } from '../../../runtime/clocks.js';
import { errorMessage, PlatformError } from '../../../runtime/errors.js';
import type { Logger } from '../../../runtime/logger.js';
import { Loop } from '../../../runtime/loop.js';
import { readEvents } from '../../event-reader.js';
import type { SpanCounts } from '../span-recorder.js';
import type { Collector, Later } from './collector.js';
import { type Ended, endedBy, spansOfEnded } from './ended-spans.js';
import { type ExportRequest, requestsOf, settledPart } from './export-requests.js';
import { LATE_SPANS_WAIT, type LateSpans, nextLateSpans, noteExported } from './late-spans.js';
import type { ExportedSpan } from './otlp.js';
import { deliver } from './span-delivery.js';

/** Between two looks for messages that have ended, in milliseconds. */
const INTERVAL_MS = 1_000;
/** The spans of a message are complete so long after its end: processes write those of tool calls every half second. */
const SETTLED_SECONDS = 2;
/** Events that are read at once. */
const EVENTS_PER_PAGE = 200;
/** Spans of one request; after one that got no answer half as many, for it may have been too large. */
const SPANS_PER_REQUEST = 500;
const HALVINGS_MAX = 9;
/** How long a process keeps others from exporting, beyond the time of a request and a pause: it may have died. */
const LEASE_SLACK_MS = 30_000;
/** Turns in which a message or plan could not be read before it is left out. */
const READ_TRIES = 3;
/** Messages of which late spans are exported in one turn: new ends wait meanwhile. */
const LATE_PER_TURN = 100;
/** Ten minutes: nobody writes more often while nothing ends. */
const TOUCH_SECONDS = 600;

/** A look before the lease, which is a write: idle processes would make it every second. */
const LOOK = `
  SELECT position >= event_head() AND tried_at > now() - interval '${TOUCH_SECONDS} seconds' AND NOT ${LATE_SPANS_WAIT} AS is_done
    FROM trace_exports WHERE exporter = 'otlp'`;
/** One that was switched off for a day begins with what is new. */
const CLAIM = `
  INSERT INTO trace_exports AS t (exporter, position, leased_by, leased_until) VALUES ('otlp', event_head(), $1, now() + $2 * interval '1 ms')
  ON CONFLICT (exporter) DO UPDATE SET leased_by = $1, leased_until = excluded.leased_until, tried_at = now(),
    position = CASE WHEN t.tried_at < now() - interval '1 day' THEN excluded.position ELSE t.position END
    WHERE t.leased_by = $1 OR t.leased_until IS NULL OR t.leased_until < now()
  RETURNING position, clock_timestamp() - interval '${SETTLED_SECONDS} seconds' AS settled_at`;
const ADVANCE = `
  UPDATE trace_exports SET position = coalesce($2, position), leased_until = now() + $3 * interval '1 ms' WHERE exporter = 'otlp' AND leased_by = $1 RETURNING 1`;
const RELEASE = `UPDATE trace_exports SET leased_by = NULL, leased_until = NULL WHERE exporter = 'otlp' AND leased_by = $1`;

export interface TraceExporterOptions {
  db: Db;
  log: Logger;
  collector: Collector;
  /** The share of traces that are exported, 0 to 1. */
  sampleRatio: number;
  counts: SpanCounts;
  clocks: Pick<Clocks, 'exportPauseMaxMs'>;
}

/** Another process has taken over. */
class LeaseLost extends Error {}

/**
 * Exports the traces of messages and plans that have ended, in the order of their events. The position moves after each request that the
 * collector has taken, so a crash repeats one request at most, or those of one message with many spans. While the collector is away nothing
 * but the position is kept: the record has the traces. Of several processes one exports at a time.
 */
export class TraceExporter {
  readonly #options: TraceExporterOptions;
  readonly #loop: Loop;
  readonly #id = randomUUID();
  readonly #leaseMs: number;
  readonly #stopped = new AbortController();
  /** Tries in a row that the collector did not take. */
  #failures = 0;
  /** How often the next request is halved, because earlier ones had no answer. */
  #halvings = 0;
  /** The message or plan that could not be read last, and in how many turns. */
  #unread = { id: '', tries: 0 };

  constructor(options: TraceExporterOptions) {
    this.#options = options;
    this.#leaseMs = options.collector.timeoutMs + options.clocks.exportPauseMaxMs + LEASE_SLACK_MS;
    setMaxListeners(0, this.#stopped.signal);
    const work = () => this.#turn();
    this.#loop = new Loop({ name: 'trace export', intervalMs: INTERVAL_MS, immediate: true, work, log: options.log });
  }

  start(): void {
    this.#loop.start();
  }

  /** Cuts the request under way off, and lets another process go on at once. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#loop.stop();
    await this.#options.db.system((tx) => tx.query(RELEASE, [this.#id], 'release_trace_export'));
  }

  /** Exports a page. @returns milliseconds until the next turn */
  async #turn(): Promise<number> {
    const { db, sampleRatio } = this.#options;
    const page = await db.system(async (tx) => {
      const [seen] = await tx.query<{ is_done: boolean }>(LOOK, [], 'look_at_trace_export');
      if (seen?.is_done) return null;
      const [claimed] = await tx.query<{ position: number; settled_at: Date }>(
        CLAIM,
        [this.#id, this.#leaseMs],
        'claim_trace_export',
      );
      if (!claimed) return null;
      const read = await readEvents(tx, { after: claimed.position, limit: EVENTS_PER_PAGE });
      return { ...settledPart(read, claimed), from: claimed.position };
    });
    if (!page) return INTERVAL_MS;
    try {
      const { events, cursor, from } = page;
      const pauseMs = cursor === from ? undefined : await this.#export(endedBy(events, sampleRatio), cursor);
      if (pauseMs !== undefined) return pauseMs;
      return events.length === EVENTS_PER_PAGE ? 0 : ((await this.#exportLate(cursor)) ?? INTERVAL_MS);
    } catch (error) {
      if (error instanceof LeaseLost || this.#stopped.signal.aborted) return INTERVAL_MS;
      throw error;
    }
  }

  /**
   * Exports what has ended up to a position.
   * @returns the pause, where the collector is away
   */
  async #export(ended: readonly Ended[], position: number): Promise<number | undefined> {
    const { db, sampleRatio } = this.#options;
    let spans: Map<string, ExportedSpan[]>;
    try {
      spans = ended.length > 0 ? await spansOfEnded(db, ended, sampleRatio) : new Map();
    } catch (error) {
      return this.#exportEach(ended, position, error);
    }
    const spansMax = () => Math.max(1, SPANS_PER_REQUEST >> this.#halvings);
    for (const request of requestsOf(ended, spans, position, spansMax)) {
      const pauseMs = await this.#send(request);
      if (pauseMs !== undefined) return pauseMs;
    }
    return undefined;
  }

  /**
   * As `#export`, one after the other, because not all of them can be read. One that cannot be, in turn after turn, is left out: no tenant holds
   * up the others.
   */
  async #exportEach(ended: readonly Ended[], upTo: number, error: unknown): Promise<number | undefined> {
    if (!isOfRecord(error)) throw error;
    const [one, ...others] = ended;
    if (one && others.length === 0) {
      const { tenant_id, kind, id } = one;
      this.#unread = { id, tries: id === this.#unread.id ? this.#unread.tries + 1 : 1 };
      if (this.#unread.tries < READ_TRIES) throw error;
      this.#leaveOut({ tenant_id, [`${kind}_id`]: id }, error);
    }
    for (const each of others.length > 0 ? ended : []) {
      const pauseMs = await this.#export([each], each.position);
      if (pauseMs !== undefined) return pauseMs;
    }
    await this.#advance(upTo);
    return undefined;
  }

  /** Exports spans that were written after their messages, which have been exported. @returns the pause, where the collector is away */
  async #exportLate(position: number): Promise<number | undefined> {
    for (let messages = 0; messages < LATE_PER_TURN; messages += 1) {
      const late = await nextLateSpans(this.#options.db);
      if (!late) return undefined;
      const pauseMs = await this.#send({ spans: await this.#read(late, position), position }, late.span_ids);
      if (pauseMs !== undefined) return pauseMs;
    }
    return 0;
  }

  async #read({ tenant_id, message_id, span_ids }: LateSpans, position: number): Promise<ExportedSpan[]> {
    const { db, sampleRatio } = this.#options;
    try {
      const message: Ended = { position, tenant_id, kind: 'message', id: message_id };
      const spans = (await spansOfEnded(db, [message], sampleRatio)).get(message_id) ?? [];
      return spans.filter(({ span_id }) => span_ids.includes(span_id));
    } catch (error) {
      if (!isOfRecord(error)) throw error;
      this.#leaveOut({ tenant_id, message_id }, error);
      return [];
    }
  }

  #leaveOut(fields: Record<string, string>, error: unknown): void {
    const { log, counts } = this.#options;
    log.error(
      { ...fields, err: errorMessage(error) },
      'the spans of a message or plan cannot be read; they are not exported',
    );
    counts.unreadable += 1;
  }

  /** Sends spans and moves the position. @param done ids of the spans that are done with then @returns the pause, where they were not taken */
  async #send(
    { spans, position }: ExportRequest,
    done = spans.map(({ span_id }) => span_id),
  ): Promise<number | undefined> {
    if (spans.length > 0) {
      const options = { ...this.#options, keepLease: () => this.#advance(null) };
      const later = await deliver(options, spans, this.#stopped.signal);
      if (later) return this.#pause(later);
      if (this.#failures > 0) this.#options.log.info({ failures: this.#failures }, 'traces are exported again');
      this.#failures = 0;
      if (position !== null) this.#halvings = 0; // the rest of the same message would be too much again
    }
    await this.#advance(position, done);
    return undefined;
  }

  #pause({ reason, afterMs, mayBeTooMuch }: Later): number {
    if (mayBeTooMuch) this.#halvings = Math.min(this.#halvings + 1, HALVINGS_MAX);
    const { exportPauseMaxMs } = this.#options.clocks;
    const pauseMs = Math.min(exportPauseMaxMs, Math.max(afterMs, INTERVAL_MS * 2 ** Math.min(this.#failures, 10)));
    if (this.#failures === 0) this.#options.log.warn({ reason }, 'traces cannot be exported; they wait on the record');
    this.#failures += 1;
    return pauseMs;
  }

  /** Keeps the lease, and moves the position unless it is null. @param done ids of spans that are done with @throws LeaseLost */
  async #advance(position: number | null, done: readonly string[] = []): Promise<void> {
    const values = [this.#id, position, this.#leaseMs];
    await this.#options.db.system(async (tx) => {
      const moved = await tx.query(ADVANCE, values, 'advance_trace_export');
      if (moved.length === 0) throw new LeaseLost('another process exports traces');
      await noteExported(tx, done);
    });
  }
}

/** Whether what is on the record may be why it cannot be read: not while the database is away, or lacks what is asked for. */
function isOfRecord(error: unknown): boolean {
  if (error instanceof PlatformError) return false;
  return !isUndone(error) || isTimedOut(error) || isDataException(error);
}
