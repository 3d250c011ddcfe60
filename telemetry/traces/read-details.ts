import { LIMITS } from '../../contracts/limits.js';
import type { Tx } from '../../db/pool.js';
import { uuidBound } from '../../runtime/ids.js';
import type {
  CountedDetails,
  CourseFacts,
  DecisionFacts,
  DispatchFacts,
  EventFacts,
  MessageDetails,
  MessageFacts,
  RecordedFacts,
  RequestFacts,
} from './facts.js';

/** How far the clocks of processes, which make ids, may be from the database's. */
const CLOCK_SLACK_MS = 60_000;
/** Of each kind a message has one row more than is shown: it says that there are more. */
const OF_KIND = LIMITS.spansPerKind + 1;
/** Rows of each table for the messages that are read at once. */
const ROWS_MAX = 25 * OF_KIND;

type Row<Facts> = Facts & Record<string, unknown>;

/** These messages have too much to be read at once: fewer of them are to be. */
class TooManyRows extends Error {}

/** Reads messages so many at a time, or fewer where these have too many rows. @param read rejects with TooManyRows */
export async function* inPortions<Read>(
  messages: readonly MessageFacts[],
  most: number,
  read: (portion: readonly MessageFacts[]) => Promise<Read>,
): AsyncGenerator<{ portion: readonly MessageFacts[]; found: Read }> {
  for (let from = 0; from < messages.length; from += most) {
    const portion = messages.slice(from, from + most);
    const found = await read(portion).catch((error: unknown) => {
      if (error instanceof TooManyRows && portion.length > 1) return undefined;
      throw error;
    });
    if (found === undefined) yield* inPortions(portion, Math.ceil(portion.length / 4), read);
    else yield { portion, found };
  }
}

/** What policies and guards decide. A reminder of a request decides nothing. */
const DECIDES = `x.category IN ('policy', 'guard') AND NOT x.payload ? 'reminder'`;

/** The events of messages, by kind. They are found by their session and time: there is an index for these. */
const EVENTS = `
  SELECT k.* FROM (
    SELECT e.*, row_number() OVER (PARTITION BY e.message_id, e.kind ORDER BY e.event_id) AS nth
      FROM unnest($2::text[], $3::text[], $4::uuid[], $5::uuid[]) AS w (session_id, trace_id, least, bound) CROSS JOIN LATERAL (
        SELECT x.message_id, x.event_id, x.event_type, x.occurred_at, x.payload,
               CASE WHEN x.category IN ('policy', 'guard') THEN 'decision' ELSE x.event_type END AS kind,
               CASE WHEN x.event_type = 'dispatch.sent' THEN x.payload ->> 'dispatch_id' END AS dispatch_id
          FROM events x
         WHERE x.session_uuid = session_uuid(uuid_of($1), w.session_id) AND x.tenant_uuid = uuid_of($1) AND group_minute(x.group_id) BETWEEN group_minute(w.least) AND group_minute(w.bound)
           AND x.group_id >= w.least AND x.group_id < w.bound AND x.trace_id = w.trace_id AND x.message_id = ANY ($6)
           AND (x.event_type IN ('message.received', 'dispatch.sent') OR ${DECIDES})) e) k
   WHERE k.nth <= ${OF_KIND}`;

const EACH_EVENT = `
  SELECT message_id, event_id, event_type, occurred_at, payload, kind, dispatch_id FROM (${EVENTS}) AS e ORDER BY event_id LIMIT ${ROWS_MAX + 1}`;

const COUNTED_EVENTS = `
  SELECT message_id, kind AS event_type, dispatch_id, min(occurred_at) AS occurred_at, count(*) AS count FROM (${EVENTS}) AS e
   GROUP BY message_id, kind, dispatch_id`;

const DISPATCHES = `
  SELECT dispatch_id, message_id, instance_id, agent_type, deployment_mode, attempt, state, error_code, sent_at, ended_at
    FROM dispatches WHERE tenant_id = $1 AND dispatch_id = ANY ($2)`;

const REQUESTS = `
  SELECT r.* FROM unnest($2::text[]) AS i (message_id) CROSS JOIN LATERAL (
    SELECT request_id, message_id, kind, source, stage, tool, policy_name, guard, state, answer ->> 'resolution' AS resolution, requested_at, ended_at
      FROM input_requests q WHERE q.tenant_id = $1 AND q.message_id = i.message_id ORDER BY requested_at, request_id LIMIT ${OF_KIND}) r
   LIMIT ${ROWS_MAX + 1}`;

const RECORDED = `
  SELECT s.* FROM unnest($2::text[]) AS i (message_id) CROSS JOIN LATERAL (
    SELECT message_id, span_id, parent_span_id, name, kind, started_at, ended_at, error_type, attributes
      FROM trace_spans t WHERE t.tenant_id = $1 AND t.message_id = i.message_id ORDER BY started_at, span_id LIMIT ${OF_KIND}) s
   LIMIT ${ROWS_MAX + 1}`;

const COUNT_RECORDED = `
  SELECT i.message_id, (SELECT count(*) FROM (
      SELECT 1 FROM trace_spans t WHERE t.tenant_id = $1 AND t.message_id = i.message_id LIMIT ${OF_KIND}) s) AS count
    FROM unnest($2::text[]) AS i (message_id)`;

/** The spans of time, by session and trace, in which messages had events. */
function windowsOf(messages: readonly MessageFacts[]) {
  const windows = new Map<string, { session_id: string; trace_id: string; fromMs: number; toMs: number }>();
  for (const { session_id, trace_id, created_at, updated_at, completed_at } of messages) {
    const fromMs = created_at.getTime() - CLOCK_SLACK_MS;
    const toMs = Math.max((completed_at ?? updated_at).getTime(), completed_at ? 0 : Date.now()) + CLOCK_SLACK_MS;
    const key = `${session_id}\n${trace_id}`;
    const known = windows.get(key);
    if (known) Object.assign(known, { fromMs: Math.min(known.fromMs, fromMs), toMs: Math.max(known.toMs, toMs) });
    else windows.set(key, { session_id, trace_id, fromMs, toMs });
  }
  return [...windows.values()];
}

function eventValues(tenantId: string, messages: readonly MessageFacts[]): unknown[] {
  const windows = windowsOf(messages);
  return [
    tenantId,
    windows.map(({ session_id }) => session_id),
    windows.map(({ trace_id }) => trace_id),
    windows.map(({ fromMs }) => uuidBound(fromMs)),
    windows.map(({ toMs }) => uuidBound(toMs)),
    messages.map(({ message_id }) => message_id),
  ];
}

/** @throws TooManyRows */
async function readAll<Facts>(tx: Tx, text: string, values: unknown[]): Promise<Facts[]> {
  const rows = await tx.query<Row<Facts>>(text, values);
  if (rows.length > ROWS_MAX) throw new TooManyRows('too many rows of messages for one reading');
  return rows;
}

/** @param events of the messages @throws TooManyRows */
async function courseOf(
  tx: Tx,
  tenantId: string,
  messages: readonly MessageFacts[],
  events: EventFacts[],
): Promise<CourseFacts> {
  const dispatchIds = events.flatMap(({ dispatch_id }) => dispatch_id ?? []);
  const dispatches = await readAll<DispatchFacts>(tx, DISPATCHES, [tenantId, dispatchIds]);
  const ids = messages.map(({ message_id }) => message_id);
  return { events, dispatches, requests: await readAll<RequestFacts>(tx, REQUESTS, [tenantId, ids]) };
}

/** What the spans of messages are derived from. @throws TooManyRows, not for a message alone */
export async function detailsOf(tx: Tx, tenantId: string, messages: readonly MessageFacts[]): Promise<MessageDetails> {
  if (messages.length === 0) return { dispatches: [], events: [], requests: [], decisions: [], recorded: [] };
  type Event = EventFacts & DecisionFacts & { kind: string };
  const events = await readAll<Event>(tx, EACH_EVENT, eventValues(tenantId, messages));
  const decisions = events.filter(({ kind }) => kind === 'decision');
  const course = await courseOf(
    tx,
    tenantId,
    messages,
    events.filter(({ kind }) => kind !== 'decision'),
  );
  const ids = messages.map(({ message_id }) => message_id);
  return { ...course, decisions, recorded: await readAll<RecordedFacts>(tx, RECORDED, [tenantId, ids]) };
}

/** The course of messages, and how much more there is of each. @throws TooManyRows, not for a message alone */
export async function countedDetailsOf(
  tx: Tx,
  tenantId: string,
  messages: readonly MessageFacts[],
): Promise<CountedDetails> {
  const events = await tx.query<Row<EventFacts & { count: number }>>(COUNTED_EVENTS, eventValues(tenantId, messages));
  const isDecision = ({ event_type }: EventFacts) => event_type === 'decision';
  const decisions = new Map(events.filter(isDecision).map(({ message_id, count }) => [message_id, count]));
  const course = await courseOf(
    tx,
    tenantId,
    messages,
    events.filter((event) => !isDecision(event)),
  );
  const ids = messages.map(({ message_id }) => message_id);
  const recorded = await tx.query<{ message_id: string; count: number }>(COUNT_RECORDED, [tenantId, ids]);
  const counts = recorded.map(({ message_id, count }) => ({
    message_id,
    decisions: decisions.get(message_id) ?? 0,
    recorded: count,
  }));
  return { ...course, counts };
}
