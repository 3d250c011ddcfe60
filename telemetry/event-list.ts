import type { z } from 'zod';
import type { EventRecord, TELEMETRY_OPERATIONS } from '../contracts/api/telemetry.js';
import { EVENT_PAYLOADS, EVENT_TYPES, type EventType } from '../contracts/events.js';
import { groupsOfSession } from '../db/events.js';
import { queryJson } from '../db/json-rows.js';
import { type KeyList, type Page, readPage } from '../db/pages/page.js';
import type { Db, Tx } from '../db/pool.js';
import { groupIdsOf } from '../db/session-ids.js';
import { groupOf, type IdRange, idRange, inBoth, newestMonths, uuidBound, uuidOf } from '../runtime/ids.js';

type EventsQuery = z.infer<typeof TELEMETRY_OPERATIONS.getEvents.request>;

const COLUMNS = `event_id, event_type, event_type AS type, category, source, severity, tenant_id, session_id, trace_id,
  occurred_at AS timestamp, payload AS event`;

/** Of a tenant's groups of events those of a session and time. Planned with the values, so that the plan has no trace of absent filters. */
const IN_PLACE = `event_groups e WHERE e.tenant_id = uuid_of($1) AND ($2::text IS NULL OR ${groupsOfSession('e', '$1', '$2')})
  AND ($3::timestamptz IS NULL OR e.occurred_at >= $3) AND ($4::timestamptz IS NULL OR e.occurred_at < $4)
  AND ($5::uuid IS NULL OR e.group_id >= $5) AND ($6::uuid IS NULL OR e.group_id < $6)`;
/**
 * Those with events of the wanted types, about a message or an instance. All events of a group that name an instance name the same one, which
 * the key tells but for a rare mistake: so few rows are read in vain.
 */
const MATCHING = `${IN_PLACE} AND ($7::text[] IS NULL OR e.types & event_bits($7) <> 0) AND ($8::uuid IS NULL OR e.message_id = $8)
  AND ($9::text IS NULL OR e.instance_mark = instance_mark($9) AND (SELECT names_instance(x.events, $9) FROM event_groups x
    WHERE x.tenant_id = e.tenant_id AND x.group_id = e.group_id))`;
/** How many events of a group match. */
const MATCHES = 'count_of(e.types, event_bits($7))';

/** An order of groups, and the same of rows with the minute as a column, which the planner then knows to come so: it sorts none. */
interface Order {
  groups: string;
  found: string;
  /** Settings of the statements that read in this order, where the planner would otherwise read and sort all of a tenant that is mostly one session. */
  planner?: { set: string; reset: string };
}

/** The order of the key, for all of a tenant's groups, and the same order as the index by session has it. */
const NEWEST_FIRST: Order = { groups: 'e.group_id DESC', found: 'e.group_id DESC' };
const NEWEST_OF_SESSION_FIRST: Order = {
  groups: 'group_minute(e.group_id) DESC, e.group_id DESC',
  found: 'e.minute DESC, e.group_id DESC',
  planner: { set: 'SET LOCAL enable_sort = off', reset: 'SET LOCAL enable_sort = on' },
};

/** Runs a statement that reads groups in their order. */
async function inOrder<Row extends object>(
  tx: Tx,
  { planner }: Order,
  text: string,
  values: unknown[],
): Promise<Row[]> {
  if (!planner) return tx.query<Row>(text, values);
  await tx.query(planner.set);
  const rows = await tx.query<Row>(text, values);
  await tx.query(planner.reset);
  return rows;
}

/** Of all events: asked for, it filters nothing. */
const PLATFORM = 'platform';

/** Groups that tell how many events of one match, for the estimate of a long list. */
const SAMPLE = 1_000;

/** Counts and skips whole groups by what the key says of them; only the events of the page are read. */
function walkOf(order: Order, ofPlace: KeyList['values'], all: KeyList['values']): NonNullable<KeyList['walk']> {
  const { groups, found } = order;
  return {
    keys: async (tx, values, limit, offset) => {
      const text = `
        WITH found AS MATERIALIZED (
          SELECT e.group_id, e.types, e.upto - e.matches AS before FROM (
            SELECT e.group_id, group_minute(e.group_id) AS minute, e.types, ${MATCHES} AS matches,
                   sum(${MATCHES}) OVER (ORDER BY ${groups} ROWS UNBOUNDED PRECEDING) AS upto
              FROM ${MATCHING}) e
           WHERE e.upto > $10 ORDER BY ${found} LIMIT $11)
        SELECT event_id(f.group_id, t.place - 1) AS key
          FROM found f CROSS JOIN LATERAL unnest(types_of(f.types)) WITH ORDINALITY AS t (name, place)
         WHERE $7::text[] IS NULL OR t.name = ANY ($7)
         ORDER BY f.before, t.place DESC LIMIT $11 OFFSET $10 - (SELECT coalesce(min(before), $10) FROM found)`;
      const rows = await inOrder<{ key: string }>(tx, order, text, [...values, offset, limit]);
      return rows.map(({ key }) => key);
    },
    count: async (tx, values, most) => {
      const counted = `SELECT ${MATCHES} AS matches FROM ${MATCHING} ORDER BY ${groups} LIMIT ${most + 1}`;
      const text = `SELECT coalesce(sum(matches), 0)::float8 AS n FROM (${counted}) g`;
      const [row] = await inOrder<{ n: number }>(tx, order, text, values);
      return row && row.n <= most ? row.n : null;
    },
    estimate: {
      from: IN_PLACE,
      values: ofPlace,
      perRow: async (tx) => {
        const sampled = `SELECT ${MATCHES} * ($9::text IS NULL OR e.instance_mark = instance_mark($9))::integer AS matches
          FROM ${IN_PLACE} AND $8::uuid IS NULL ORDER BY ${groups} LIMIT ${SAMPLE}`;
        const text = `SELECT coalesce(avg(matches), 1)::float8 AS n FROM (${sampled}) g`;
        const [row] = await inOrder<{ n: number }>(tx, order, text, all);
        return row?.n ?? 1;
      },
    },
  };
}

/** The types of events that a query wants; null for all. */
function wantedTypes({ category, type, source, instance_id, message_id }: EventsQuery): EventType[] | null {
  if (source !== undefined && source !== PLATFORM) return [];
  const wanted = EVENT_TYPES.filter(
    (name) =>
      (category === undefined || name.startsWith(`${category}.`)) &&
      (type === undefined || type.split(',').includes(name)) &&
      (instance_id === undefined || 'instance_id' in EVENT_PAYLOADS[name].shape) &&
      // A message may have opened its session: the event of that is not about the message.
      (message_id === undefined || name !== 'session.created'),
  );
  return wanted.length === EVENT_TYPES.length ? null : wanted;
}

/** How long before and after its time events of a message may be written, by the clocks of several processes. */
const MESSAGE_SLACK_MS = 3_600_000;

/** Where events of a message are: in its session, and in its time once it is over. Undefined: there is no such message, or not in this session. */
async function placeOfMessage(db: Db, tenantId: string, { message_id, session_id }: EventsQuery) {
  type Message = { session_id: string; created_at: Date; completed_at: Date | null };
  const text = 'SELECT session_id, created_at, completed_at FROM messages WHERE tenant_id = $1 AND message_id = $2';
  const [message] = await db.tenant(tenantId, (tx) => tx.query<Message>(text, [tenantId, message_id]));
  if (!message || (session_id !== undefined && session_id !== message.session_id)) return undefined;
  const { created_at, completed_at } = message;
  return {
    session_id: message.session_id,
    least: uuidBound(created_at.getTime() - MESSAGE_SLACK_MS),
    bound: completed_at && uuidBound(completed_at.getTime() + MESSAGE_SLACK_MS),
  };
}

/** Where the events of a query are, as far as its message or its session tells. */
async function placeOf(
  db: Db,
  tenantId: string,
  query: EventsQuery,
): Promise<({ session_id: string | null } & IdRange) | undefined> {
  const { message_id, session_id } = query;
  if (message_id !== undefined) return placeOfMessage(db, tenantId, query);
  if (session_id === undefined) return { session_id: null, least: null, bound: null };
  return { session_id, ...(await groupIdsOf(db, tenantId, session_id)) };
}

/** A tenant's events that match, the newest first. */
async function matching(db: Db, tenantId: string, query: EventsQuery): Promise<KeyList> {
  const { from = null, to = null, message_id, instance_id = null } = query;
  const place = await placeOf(db, tenantId, query);
  const { session_id = query.session_id ?? null } = place ?? {};
  const range = inBoth(idRange(uuidBound, query), place ?? { least: null, bound: null });
  const inPlace = ({ least, bound }: IdRange): KeyList['values'] => [tenantId, session_id, from, to, least, bound];
  const messageUuid = place && message_id !== undefined ? uuidOf(message_id) : null;
  const others = [place ? wantedTypes(query) : [], messageUuid, instance_id];
  const values: KeyList['values'] = [...inPlace(range), ...others];
  const newest = newestMonths({ ...range, bound: range.bound ?? uuidBound(Date.now()) }, null);
  const order = session_id === null ? NEWEST_FIRST : NEWEST_OF_SESSION_FIRST;
  return {
    key: 'e.group_id',
    from: MATCHING,
    orderBy: order.groups,
    values,
    newest: newest === null ? undefined : [...inPlace({ ...range, least: newest }), ...others],
    appendOnly: true,
    walk: walkOf(order, inPlace(range), values),
  };
}

/** Events as the API shows them, the newest first. */
async function readEvents(tx: Tx, tenantId: string, eventIds: string[]): Promise<EventRecord[]> {
  const rows = await queryJson<EventRecord>(
    tx,
    `SELECT ${COLUMNS} FROM events WHERE tenant_uuid = uuid_of($1) AND group_id = ANY ($3) AND event_id = ANY ($2)
      ORDER BY group_id DESC, event_id DESC`,
    [tenantId, eventIds, [...new Set(eventIds.map(groupOf))]],
  );
  return rows.map(({ trace_id, ...event }) => ({ ...event, ...(trace_id && { trace_id }) }));
}

/** A page of a tenant's events, newest first. `message_id` includes the events of the message's dispatches. */
export async function listEvents(db: Db, tenantId: string, query: EventsQuery): Promise<Page<EventRecord>> {
  const list = await matching(db, tenantId, query);
  return readPage(db, list, query, (tx, eventIds) => readEvents(tx, tenantId, eventIds));
}
