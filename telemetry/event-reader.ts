import type { EventRecord } from '../contracts/api/telemetry.js';
import type { Db, Tx } from '../db/pool.js';

/** An event with its position, which is a cursor: readers go on after it. */
export interface PositionedEvent {
  position: number;
  /** Of the message that an event of a message or a dispatch belongs to; null for other events. */
  message_id: string | null;
  record: EventRecord;
}

/** Events in the order of their positions. */
export interface EventPage {
  events: PositionedEvent[];
  /** To read on after: no event up to here is missing. */
  cursor: number;
}

interface Row extends Omit<EventRecord, 'timestamp' | 'trace_id' | 'event' | 'type'> {
  [column: string]: unknown;
  head: number;
  /** Null where there is none: the row has only the head. Of a group that was erased there is only the position. */
  position: number | null;
  trace_id: string | null;
  occurred_at: Date;
  payload: Record<string, unknown>;
  message_id: string | null;
}

/** Of more tenants than these, a consumer gets the events of all: each tenant costs a search. */
const TENANTS_MAX = 100;

const READ = 'SELECT h.head, e.* FROM event_head() AS h (head) LEFT JOIN LATERAL read_events($1, $2, $3) e ON true';

function positionedEvent(row: Row): PositionedEvent {
  const { event_id, event_type, category, source, severity, tenant_id, session_id, trace_id, message_id } = row;
  const record = {
    event_id,
    event_type,
    category,
    type: event_type,
    source,
    severity,
    tenant_id,
    session_id,
    timestamp: row.occurred_at.toISOString(),
    ...(trace_id !== null && { trace_id }),
    event: row.payload,
  };
  return { position: row.position ?? 0, message_id, record };
}

/** @param rows of a read after this cursor with this limit */
function pageOf(rows: Row[], after: number, limit: number): EventPage {
  const found = rows.filter(({ position }) => position !== null);
  const isWhole = found.length < limit;
  const last = isWhole ? rows[0]?.head : found.at(-1)?.position;
  const events = found.filter(({ event_id }) => event_id !== null).map(positionedEvent);
  return { events, cursor: Math.max(after, last ?? 0) };
}

/**
 * Reads events in the order of their positions, as the platform (`db.system`). An event has a position shortly after its commit.
 * @param query.after a cursor; 0 for the oldest event
 * @param query.tenants only events of these
 * @param query.limit events at most, 1 to 10000
 */
export async function readEvents(
  tx: Tx,
  { after, tenants, limit }: { after: number; tenants?: readonly string[]; limit: number },
): Promise<EventPage> {
  return pageOf(await tx.query<Row>(READ, [after, tenants ?? null, limit], 'read_events'), after, limit);
}

/** Reads as `readEvents` does, of the tenants that a query gives, in the same snapshot: no event of a tenant that is there is passed over. */
const READ_OF = (tenants: string) => `
  SELECT h.head, e.* FROM event_head() AS h (head) LEFT JOIN LATERAL read_events($1, (
    SELECT CASE WHEN count(*) <= ${TENANTS_MAX} THEN coalesce(array_agg(t.tenant_id), '{}') END
      FROM (SELECT tenant_id FROM (${tenants}) w (tenant_id) LIMIT ${TENANTS_MAX + 1}) t), $2) e ON true`;

const CLAIM = 'SELECT position FROM event_cursors WHERE consumer = $1 FOR UPDATE SKIP LOCKED';
const CREATE = 'INSERT INTO event_cursors (consumer, position) VALUES ($1, event_head()) ON CONFLICT DO NOTHING';
const ADVANCE = 'UPDATE event_cursors SET position = $2, updated_at = now() WHERE consumer = $1';

/**
 * Hands the next events to a consumer of all events, each once, on any number of nodes: the cursor is a row, which moves in the transaction in
 * which `work` writes what it makes of the events. Another node that asks meanwhile gets nothing.
 * @param consumer its name; a new one begins with the events that follow
 * @param from.tenants a query of the ids of the tenants whose events are wanted; those of others may come too. All by default
 * @param work runs in the transaction, may be repeated after a deadlock, and must not have other effects. Resolves to how many of the events
 * it has taken, from the first on and at least one: the others come again
 * @returns how many events were taken: with `limit`, more may be there. Null while another node reads for this consumer
 */
export function consumeEvents(
  db: Db,
  { consumer, limit, tenants }: { consumer: string; limit: number; tenants?: string },
  work: (tx: Tx, events: PositionedEvent[]) => Promise<number>,
): Promise<number | null> {
  return db.system(async (tx) => {
    const [claimed] = await tx.query<{ position: number }>(CLAIM, [consumer], 'claim_event_cursor');
    if (!claimed) {
      await tx.query(CREATE, [consumer], 'create_event_cursor');
      return null;
    }
    const after = claimed.position;
    const { events, cursor } = tenants
      ? pageOf(await tx.query<Row>(READ_OF(tenants), [after, limit], `read_events_of_${consumer}`), after, limit)
      : await readEvents(tx, { after, limit });
    if (cursor === claimed.position) return 0;
    const taken = events.length > 0 ? await work(tx, events) : 0;
    const reached = taken < events.length ? (events[taken - 1]?.position ?? claimed.position) : cursor;
    await tx.query(ADVANCE, [consumer, reached], 'advance_event_cursor');
    return taken;
  });
}
