import type { z } from 'zod';
import type { EventRecord, TELEMETRY_OPERATIONS } from '../contracts/api/telemetry.js';
import { queryJson } from '../db/json-rows.js';
import { type KeyList, type Page, readPage } from '../db/page.js';
import type { Db, Tx } from '../db/pool.js';
import { idRange, uuidBound } from '../runtime/ids.js';

type EventsQuery = z.infer<typeof TELEMETRY_OPERATIONS.getEvents.request>;

const COLUMNS = `event_id, event_type, event_type AS type, category, source, severity, tenant_id, session_id, trace_id,
  occurred_at AS timestamp, payload AS event`;

/**
 * Of a tenant's events, or groups of them, those that match. Planned with the values, so that the plan has no trace of absent filters. Those of a
 * message are in its session, for which there is an index.
 */
const MATCHING = `e.tenant_id = $1 AND ($2::text IS NULL OR e.session_id = $2)
  AND ($3::timestamptz IS NULL OR e.occurred_at >= $3) AND ($4::timestamptz IS NULL OR e.occurred_at < $4)
  AND ($5::uuid IS NULL OR e.group_id >= $5) AND ($6::uuid IS NULL OR e.group_id < $6)`;
const GROUPS = `event_groups e WHERE ${MATCHING}`;
const EVENTS = `events e WHERE ${MATCHING} AND ($7::text IS NULL OR e.category = $7) AND ($8::text IS NULL OR e.event_type = $8)
  AND ($9::text IS NULL OR e.source = $9) AND ($10::text IS NULL OR e.payload ->> 'instance_id' = $10)
  AND ($11::text IS NULL OR e.message_id = $11
       AND e.session_id = (SELECT m.session_id FROM messages m WHERE m.tenant_id = $1 AND m.message_id = $11))`;

/** The order of the key, for all of a tenant's groups, and the same order as the index by session has it. */
const NEWEST_FIRST = 'e.group_id DESC';
const NEWEST_OF_SESSION_FIRST = 'group_minute(e.group_id) DESC, e.group_id DESC';

/** Of all events: asked for, it filters nothing. */
const PLATFORM = 'platform';

/** Groups that tell how many events one has, for the estimate of a long list. */
const SAMPLE = 1_000;

/** Counts and skips whole groups by what the key says of them; only the events of the page are read. */
function walkOf(orderBy: string, values: unknown[]): KeyList['walk'] {
  const first = (what: string, groups: number) =>
    `SELECT ${what} AS n FROM (SELECT e.event_count FROM ${GROUPS} ORDER BY ${orderBy} LIMIT ${groups}) g`;
  return {
    keys: async (tx, limit, offset) => {
      const text = `
        WITH found AS MATERIALIZED (
          SELECT e.group_id, e.event_count, e.upto - e.event_count AS before FROM (
            SELECT e.group_id, e.event_count, sum(e.event_count) OVER (ORDER BY ${orderBy} ROWS UNBOUNDED PRECEDING) AS upto FROM ${GROUPS}) e
           WHERE e.upto > $7 ORDER BY ${orderBy} LIMIT $8)
        SELECT event_id(f.group_id, place) AS key FROM found f CROSS JOIN LATERAL generate_series(f.event_count - 1, 0, -1) AS place
         ORDER BY f.before, place DESC LIMIT $8 OFFSET $7 - (SELECT coalesce(min(before), $7) FROM found)`;
      const rows = await tx.query<{ key: string }>(text, [...values, offset, limit]);
      return rows.map(({ key }) => key);
    },
    count: async (tx, most) => {
      const [row] = await tx.query<{ n: number }>(first('coalesce(sum(event_count), 0)::float8', most + 1), values);
      return row && row.n <= most ? row.n : null;
    },
    perRow: async (tx) => {
      const [row] = await tx.query<{ n: number }>(first('coalesce(avg(event_count), 1)::float8', SAMPLE), values);
      return row?.n ?? 1;
    },
  };
}

/** A tenant's events that match, the newest first. */
function matching(tenantId: string, query: EventsQuery): KeyList {
  const { session_id, category, type, from, to, instance_id, message_id } = query;
  const source = query.source === PLATFORM ? undefined : query.source;
  const { least, bound } = idRange(uuidBound, { from, to });
  const ofGroups = [session_id, from, to, least, bound].map((value) => value ?? null);
  const ofEvents = [category, type, source, instance_id, message_id].map((value) => value ?? null);
  const orderBy = session_id || message_id ? NEWEST_OF_SESSION_FIRST : NEWEST_FIRST;
  if (ofEvents.every((value) => value === null)) {
    const values: KeyList['values'] = [tenantId, ...ofGroups];
    return { key: 'e.group_id', from: GROUPS, orderBy, values, appendOnly: true, walk: walkOf(orderBy, values) };
  }
  const values: KeyList['values'] = [tenantId, ...ofGroups, ...ofEvents];
  return { key: 'e.event_id', from: EVENTS, orderBy: `${orderBy}, e.event_id DESC`, values, appendOnly: true };
}

/** Events as the API shows them, the newest first. */
async function readEvents(tx: Tx, tenantId: string, eventIds: string[]): Promise<EventRecord[]> {
  const rows = await queryJson<EventRecord>(
    tx,
    `SELECT ${COLUMNS} FROM events WHERE tenant_id = $1 AND group_id = ANY (ARRAY(SELECT group_of(id) FROM unnest($2::text[]) id))
        AND event_id = ANY ($2) ORDER BY group_id DESC, event_id DESC`,
    [tenantId, eventIds],
  );
  return rows.map(({ trace_id, ...event }) => ({ ...event, ...(trace_id && { trace_id }) }));
}

/** A page of a tenant's events, newest first. `message_id` includes the events of the message's dispatches. */
export function listEvents(db: Db, tenantId: string, query: EventsQuery): Promise<Page<EventRecord>> {
  return readPage(db, matching(tenantId, query), query, (tx, eventIds) => readEvents(tx, tenantId, eventIds));
}
