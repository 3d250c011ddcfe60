import type { z } from 'zod';
import type { EventRecord, TELEMETRY_OPERATIONS } from '../contracts/api/telemetry.js';
import { queryPage } from '../db/json-rows.js';
import type { Tx } from '../db/pool.js';
import { idBound } from '../runtime/ids.js';

/** How far the clocks of processes and database may differ, in milliseconds. */
const CLOCK_SLACK_MS = 3_600_000;

/** Reads the events of the message's session, for which there is an index. Events of a dispatch name the dispatch only. */
const OF_MESSAGE = `(session_id = (SELECT m.session_id FROM messages m WHERE m.tenant_id = $1 AND m.message_id = $9)
    AND (payload ->> 'message_id' = $9
         OR EXISTS (SELECT 1 FROM dispatches d WHERE d.tenant_id = $1 AND d.dispatch_id = payload ->> 'dispatch_id' AND d.message_id = $9)))`;
const LIST = {
  columns: `event_id, event_type, event_type AS type, category, source, severity, tenant_id, session_id, trace_id,
    occurred_at AS timestamp, payload AS event`,
  from: `events WHERE tenant_id = $1 AND ($2::text IS NULL OR session_id = $2) AND ($3::text IS NULL OR category = $3)
    AND ($4::text IS NULL OR event_type = $4) AND ($5::text IS NULL OR source = $5)
    AND ($6::timestamptz IS NULL OR occurred_at >= $6) AND ($7::timestamptz IS NULL OR occurred_at < $7)
    AND ($8::text IS NULL OR payload ->> 'instance_id' = $8)
    AND ($9::text IS NULL OR ${OF_MESSAGE}) AND ($10::text IS NULL OR event_id >= $10) AND ($11::text IS NULL OR event_id < $11)`,
};
/** The order of the key, for all of a tenant's events, and the same order as the index by session has it. */
const NEWEST_FIRST = 'event_id DESC';
const NEWEST_OF_SESSION_FIRST = 'left(event_id, 12) DESC, event_id DESC';

/** An event id at a time, for which there is an index: ids are made shortly before their events are written. */
const idAt = (time: string | undefined, slackMs: number) => time && idBound('evt', Date.parse(time) + slackMs);

/** A page of a tenant's events, newest first; `count` is the total. `message_id` includes the events of the message's dispatches. */
export async function listEvents(
  tx: Tx,
  tenantId: string,
  query: z.infer<typeof TELEMETRY_OPERATIONS.getEvents.request>,
): Promise<{ count: number; events: EventRecord[] }> {
  const { session_id, category, type, source, from, to, instance_id, message_id } = query;
  const ids = [idAt(from, -CLOCK_SLACK_MS), idAt(to, CLOCK_SLACK_MS)];
  const filters = [session_id, category, type, source, from, to, instance_id, message_id, ...ids];
  const values = [tenantId, ...filters.map((value) => value ?? null)];
  const orderBy = session_id || message_id ? NEWEST_OF_SESSION_FIRST : NEWEST_FIRST;
  const { count, rows } = await queryPage<EventRecord>(tx, { ...LIST, orderBy }, values, query);
  return { count, events: rows.map(({ trace_id, ...event }) => ({ ...event, ...(trace_id && { trace_id }) })) };
}
