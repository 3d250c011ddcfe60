import type { Db, Tx } from '../db/pool.js';
import { type EventPage, type PositionedEvent, readEvents } from './event-reader.js';

/**
 * Where the consumer of all events has left a tenant's events behind: after this position the tenant's events are read by a cursor of its own, in
 * turns with those of other such tenants, until it has caught up.
 */
export interface LeftBehind {
  tenant_id: string;
  /** The tenant's events up to here have been taken. */
  position: number;
}

/** The cursor of a tenant is a row beside those of the consumers, so retention keeps what it has not read. */
const prefixOf = (consumer: string) => `${consumer}/`;

const LEAVE_BEHIND = `
  INSERT INTO event_cursors (consumer, position)
    SELECT $1 || l.tenant_id, l.position FROM jsonb_to_recordset($2) AS l (tenant_id text, position bigint)`;
const BEHIND =
  'SELECT substr(consumer, length($1) + 1) AS tenant_id FROM event_cursors WHERE starts_with(consumer, $1)';
/** The one whose turn was longest ago. */
const CLAIM = `
  SELECT consumer, substr(consumer, length($1) + 1) AS tenant_id, position FROM event_cursors WHERE starts_with(consumer, $1)
   ORDER BY updated_at LIMIT 1 FOR UPDATE SKIP LOCKED`;
const MAIN = 'SELECT position FROM event_cursors WHERE consumer = $1';
const ADVANCE = 'UPDATE event_cursors SET position = $2, updated_at = clock_timestamp() WHERE consumer = $1';
const CATCH_UP = 'DELETE FROM event_cursors WHERE consumer = $1';

/** Gives tenants cursors of their own, in the transaction that moves the consumer's cursor past the events that it leaves behind. */
export async function leaveBehind(tx: Tx, consumer: string, tenants: LeftBehind[]): Promise<void> {
  if (tenants.length > 0) await tx.query(LEAVE_BEHIND, [prefixOf(consumer), JSON.stringify(tenants)]);
}

/** The tenants that have cursors of their own, as the transaction sees them. */
export async function tenantsBehind(tx: Tx, consumer: string): Promise<Set<string>> {
  const rows = await tx.query<{ tenant_id: string }>(BEHIND, [prefixOf(consumer)], 'tenants_behind');
  return new Set(rows.map(({ tenant_id }) => tenant_id));
}

async function mainPosition(tx: Tx, consumer: string, lock = ''): Promise<number> {
  const [main] = await tx.query<{ position: number }>(`${MAIN} ${lock}`, [consumer]);
  return main?.position ?? 0;
}

/** A tenant's next events after its cursor, up to a position, and the cursor to go on with: at that position when there are no more. */
async function eventsUpTo(
  tx: Tx,
  { tenant_id, position }: LeftBehind,
  head: number,
  limit: number,
): Promise<EventPage> {
  const page = await readEvents(tx, { after: position, tenants: [tenant_id], limit });
  const events = page.events.filter((event) => event.position <= head);
  return { events, cursor: Math.min(page.cursor, head) };
}

/**
 * Hands the next events of one tenant that was left behind to the consumer: each once, on any number of nodes. A tenant that has caught up loses
 * its cursor while nobody moves the consumer's, so no event is handed over by both or by neither.
 * @param work as for `consumeEvents`
 * @returns whether a tenant had its turn; false: none is left behind, or other nodes are at work on all
 */
export function consumeLeftBehind(
  db: Db,
  { consumer, limit }: { consumer: string; limit: number },
  work: (tx: Tx, events: PositionedEvent[]) => Promise<number>,
): Promise<boolean> {
  return db.system(async (tx) => {
    const [own] = await tx.query<LeftBehind & { consumer: string }>(CLAIM, [prefixOf(consumer)]);
    if (!own) return false;
    // Never beyond the consumer's cursor: what follows it is the consumer's once the tenant has caught up.
    const head = await mainPosition(tx, consumer);
    const { events, cursor } = await eventsUpTo(tx, own, head, limit);
    if (events.length > 0 || cursor < head) {
      const taken = events.length > 0 ? await work(tx, events) : 0;
      const reached = taken < events.length ? (events[taken - 1]?.position ?? own.position) : cursor;
      await tx.query(ADVANCE, [own.consumer, reached]);
      return true;
    }
    const locked = await mainPosition(tx, consumer, 'FOR UPDATE');
    const rest = await eventsUpTo(tx, { tenant_id: own.tenant_id, position: head }, locked, 1);
    const isThere = rest.events.length === 0 && rest.cursor >= locked;
    if (isThere) await tx.query(CATCH_UP, [own.consumer]);
    else await tx.query(ADVANCE, [own.consumer, head]);
    return true;
  });
}
