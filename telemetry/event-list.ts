import type { z } from 'zod';
import type { EventRecord, TELEMETRY_OPERATIONS } from '../contracts/api/telemetry.js';
import { queryJson } from '../db/json-rows.js';
import { type KeyList, type Page, readPage } from '../db/page.js';
import type { Db, Tx } from '../db/pool.js';
import { idRange } from '../runtime/ids.js';

type EventsQuery = z.infer<typeof TELEMETRY_OPERATIONS.getEvents.request>;

const COLUMNS = `event_id, event_type, event_type AS type, category, source, severity, tenant_id, session_id, trace_id,
  occurred_at AS timestamp, payload_of(events) AS event`;

/** Reads the events of the message's session, for which there is an index. Events of a dispatch name the dispatch only. */
const OF_MESSAGE = `(session_id = (SELECT m.session_id FROM messages m WHERE m.tenant_id = $1 AND m.message_id = $9)
    AND (payload ->> 'message_id' = $9
         OR EXISTS (SELECT 1 FROM dispatches d WHERE d.tenant_id = $1 AND d.dispatch_id = payload ->> 'dispatch_id' AND d.message_id = $9)))`;
/** The order of the key, for all of a tenant's events, and the same order as the index by session has it. */
const NEWEST_FIRST = 'event_id DESC';
const NEWEST_OF_SESSION_FIRST = 'left(event_id, 12) DESC, event_id DESC';

/** Planned with the values, so that the plan has no trace of absent filters. */
const LISTED = `events WHERE tenant_id = $1 AND ($2::text IS NULL OR session_id = $2) AND ($3::text IS NULL OR category = $3)
  AND ($4::text IS NULL OR event_type = $4) AND ($5::text IS NULL OR source = $5)
  AND ($6::timestamptz IS NULL OR occurred_at >= $6) AND ($7::timestamptz IS NULL OR occurred_at < $7)
  AND ($8::text IS NULL OR payload ->> 'instance_id' = $8)
  AND ($9::text IS NULL OR ${OF_MESSAGE}) AND ($10::text IS NULL OR event_id >= $10) AND ($11::text IS NULL OR event_id < $11)`;

/** A tenant's events that match, the newest first. */
function matching(tenantId: string, query: EventsQuery): KeyList {
  const { session_id, category, type, source, from, to, instance_id, message_id } = query;
  const { least, bound } = idRange('evt', { from, to });
  const filters = [session_id, category, type, source, from, to, instance_id, message_id, least, bound];
  const orderBy = session_id || message_id ? NEWEST_OF_SESSION_FIRST : NEWEST_FIRST;
  const values: KeyList['values'] = [tenantId, ...filters.map((value) => value ?? null)];
  return { key: 'event_id', from: LISTED, orderBy, values, appendOnly: true };
}

/** Events as the API shows them, the newest first. */
async function readEvents(tx: Tx, tenantId: string, eventIds: string[]): Promise<EventRecord[]> {
  const rows = await queryJson<EventRecord>(
    tx,
    `SELECT ${COLUMNS} FROM events WHERE tenant_id = $1 AND event_id = ANY ($2) ORDER BY event_id DESC`,
    [tenantId, eventIds],
  );
  return rows.map(({ trace_id, ...event }) => ({ ...event, ...(trace_id && { trace_id }) }));
}

/** A page of a tenant's events, newest first. `message_id` includes the events of the message's dispatches. */
export function listEvents(db: Db, tenantId: string, query: EventsQuery): Promise<Page<EventRecord>> {
  return readPage(db, matching(tenantId, query), query, (tx, eventIds) => readEvents(tx, tenantId, eventIds));
}
