import type { Db } from '../../db/pool.js';
import type { Clocks } from '../../runtime/clocks.js';

/** So many are counted in each queue; the metric says "at least" there. */
const COUNTED_MAX = 10_000;
/** Several scrapers, or one that asks often, share an answer of so many milliseconds. */
const KEPT_MS = 2_000;

/** Where work waits, and since when: each is found by an index over what waits alone. */
const QUEUES = {
  messages_without_agent: 'SELECT unrouted_since AS since FROM running_messages WHERE queue IS NOT NULL',
  messages_to_wake: `SELECT wake_requested_at AS since FROM running_messages WHERE wake_requested_at < now() - $1 * interval '1 ms'`,
  input_requests: `SELECT requested_at AS since FROM input_requests WHERE state = 'pending'`,
  deliveries_waiting: 'SELECT queued_at AS since FROM delivery_queue WHERE started_at IS NULL',
  deliveries_running: 'SELECT started_at AS since FROM delivery_queue WHERE started_at IS NOT NULL',
  plan_wakes: 'SELECT due_at AS since FROM plan_wakes WHERE due_at < now()',
  knowledge_jobs: `SELECT created_at AS since FROM knowledge_jobs WHERE status = 'processing'`,
  erasures: 'SELECT requested_at AS since FROM erasures WHERE finished_at IS NULL',
} as const;

type Queue = keyof typeof QUEUES;

const depthOf = ([queue, rows]: [string, string]) => `
  SELECT '${queue}' AS queue, count(*) AS depth, coalesce(greatest(0, extract(epoch FROM now() - min(since))), 0)::float8 AS oldest_seconds
    FROM (${rows} LIMIT ${COUNTED_MAX}) AS waiting`;
const DEPTHS = Object.entries(QUEUES).map(depthOf).join(' UNION ALL ');
/**
 * Groups of events that have a position and that a reader has not read, also of a tenant that the alert relay has left behind: not before its
 * first turn. The export of traces begins anew after a day.
 */
const UNREAD = `
  SELECT r.reader, max(group_position_at(event_head()) - group_position_at(r.position))::float8 AS unread FROM (
    SELECT split_part(consumer, '/', 1) AS reader, position FROM event_cursors
     WHERE consumer IN ('alerts', 'usage') OR consumer LIKE 'alerts/%' UNION ALL
    SELECT 'traces', position FROM trace_exports WHERE exporter = 'otlp' AND tried_at > now() - interval '1 day') r GROUP BY 1`;

/** Receivers that get only probes and for which deliveries wait. */
const UNAVAILABLE = `
  SELECT count(*)::float8 AS unavailable FROM (
    SELECT 1 FROM receiver_breakers b WHERE b.open_until IS NOT NULL AND EXISTS (
      SELECT 1 FROM delivery_queue q WHERE q.tenant_id = b.tenant_id AND q.receiver = b.receiver AND q.started_at IS NULL)
     LIMIT ${COUNTED_MAX}) AS counted`;

/** A loop that reads all events in their order. */
export interface EventReader {
  reader: 'alerts' | 'usage' | 'traces';
  unread: number;
}

/** A queue of the whole platform. */
export interface QueueDepth {
  queue: Queue;
  /** At most `COUNTED_MAX`. */
  depth: number;
  oldest_seconds: number;
}

export interface QueueDepths {
  queues: QueueDepth[];
  readers: EventReader[];
  unavailableReceivers: number;
}

/** Reads how much waits in Postgres. Calls of the same seconds share one read, so that scrapes cost the database the same however many there are. */
export function createQueueDepths(db: Db, { overdueMs }: Pick<Clocks, 'overdueMs'>): () => Promise<QueueDepths> {
  let readAtMs = Number.NEGATIVE_INFINITY;
  let latest: Promise<QueueDepths> | undefined;
  const read = () =>
    db.system(async (tx) => {
      const queues = await tx.query<QueueDepth>(DEPTHS, [overdueMs]);
      const readers = await tx.query<EventReader>(UNREAD);
      const [receivers] = await tx.query<{ unavailable: number }>(UNAVAILABLE);
      return { queues, readers, unavailableReceivers: receivers?.unavailable ?? 0 };
    });
  return () => {
    if (latest && performance.now() < readAtMs + KEPT_MS) return latest;
    readAtMs = performance.now();
    latest = read();
    return latest;
  };
}
