import { z } from 'zod';
import type { Caller } from '../contracts/api/auth.js';
import type { RequestRecord, RequestsGetRequest } from '../contracts/api/policies/requests.js';
import { ownMessages, viewOf } from '../db/ownership.js';
import { createCursors } from '../db/pages/cursors.js';
import { type Counted, countRows, inKeyOrder, type KeyList } from '../db/pages/page.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { Secrets } from '../runtime/secrets.js';
import {
  mayAnswer,
  type RequestSummary,
  readSummaries,
  recordsOf,
  STATES,
  type StoredState,
} from './request-records.js';

/** Requests that one call looks through for those that the caller may answer. */
const LOOKED_THROUGH_MAX = 1_000;
/** In one step, whatever the size of the page. */
const LOOKED_AT_ONCE = 200;

/** Whether the reader, by its `viewOf` $2, may see a request: it follows the rights on the message, or on the plan. */
const OWN_REQUEST = `($2::jsonb IS NULL
  OR EXISTS (SELECT 1 FROM messages m WHERE m.tenant_id = q.tenant_id AND m.message_id = q.message_id AND ${ownMessages('m', '$2')})
  OR EXISTS (SELECT 1 FROM plans p WHERE p.tenant_id = q.tenant_id AND p.plan_id = q.plan_id AND p.agent_type = $2::jsonb ->> 'agent_type'))`;

/** Planned with the values, so that the plan has no trace of absent filters. */
const MATCHING = `input_requests q WHERE q.tenant_id = $1 AND ${OWN_REQUEST}
  AND ($3::text IS NULL OR q.state = $3) AND ($4::text IS NULL OR $4 = ANY (q.approvers)) AND ($5::text IS NULL OR q.tool = $5)
  AND ($6::text IS NULL OR q.session_id = $6) AND ($7::text IS NULL OR q.kind = $7) AND ($8::text IS NULL OR q.source = $8)
  AND ($9::timestamptz IS NULL OR q.requested_at < $9) AND ($10::timestamptz IS NULL OR q.requested_at >= $10)
  AND ($11::text IS NULL OR EXISTS (
    SELECT 1 FROM messages m WHERE m.tenant_id = q.tenant_id AND m.message_id = q.message_id AND coalesce(m.agent_type, m.want_agent_type) = $11))
  AND ($12::text IS NULL OR EXISTS (
      SELECT 1 FROM messages m WHERE m.tenant_id = q.tenant_id AND m.message_id = q.message_id AND m.user_id = $12)
    OR q.plan_id IS NOT NULL AND EXISTS (SELECT 1 FROM sessions s WHERE s.tenant_id = q.tenant_id AND s.session_id = q.session_id AND s.user_id = $12))`;

/** The orders, each by an index: of all requests, and of those in one state. */
const ORDERS: Record<RequestsGetRequest['sort'], { column: string; direction: 'ASC' | 'DESC' }> = {
  oldest: { column: 'requested_at', direction: 'ASC' },
  newest: { column: 'requested_at', direction: 'DESC' },
  expires: { column: 'expires_at', direction: 'ASC' },
};

/** The last request that a page has looked at: its place in the order, in microseconds, and its id. */
const Position = z.tuple([z.string().max(40), z.string().max(200)]);
type Position = z.infer<typeof Position>;

const storedState = (state: RequestsGetRequest['state']): StoredState | null =>
  (Object.keys(STATES) as StoredState[]).find((stored) => STATES[stored] === state) ?? null;

function listOf(caller: Caller, query: RequestsGetRequest): KeyList {
  const { approver, tool, session_id, kind, source, before, after, agent_type, user_id } = query;
  const filters = [approver, tool, session_id, kind, source, before, after, agent_type, user_id];
  const { column, direction } = ORDERS[query.sort];
  return {
    key: 'q.request_id',
    from: MATCHING,
    orderBy: `q.${column} ${direction}, q.request_id ${direction}`,
    values: [caller.tenant_id, viewOf(caller), storedState(query.state), ...filters.map((value) => value ?? null)],
  };
}

/** A request among the keys, with its place in the order. */
interface Found {
  request_id: string;
  at: string;
}

async function keysAfter(
  tx: Tx,
  { from, orderBy, values }: KeyList,
  sort: RequestsGetRequest['sort'],
  position: Position | null,
  limit: number,
): Promise<Found[]> {
  const { column, direction } = ORDERS[sort];
  const beyond = direction === 'ASC' ? '>' : '<';
  const next = values.length + 1;
  const rest = position ? ` AND (q.${column}, q.request_id) ${beyond} ($${next}::timestamptz, $${next + 1})` : '';
  const text = `SELECT q.request_id, q.${column}::text AS at FROM ${from}${rest} ORDER BY ${orderBy} LIMIT ${limit}`;
  return tx.query<Found>(text, [...values, ...(position ?? [])]);
}

/** A page, and from where the next one goes on; null where nothing is left. */
interface Walked {
  summaries: RequestSummary[];
  next: Position | null;
}

/** Walks on until the page is full. Of the requests that the caller may answer, it looks through so many at most, and the next page goes on there. */
async function walk(tx: Tx, caller: Caller, query: RequestsGetRequest, start: Position | null): Promise<Walked> {
  const list = listOf(caller, query);
  const { sort, page_size, mine } = query;
  const step = mine ? LOOKED_AT_ONCE : page_size;
  const summaries: RequestSummary[] = [];
  let position = start;
  for (let looked = 0; looked < LOOKED_THROUGH_MAX; looked += step) {
    const found = await keysAfter(tx, list, sort, position, step + 1);
    const part = found.slice(0, step);
    const rows = await readSummaries(
      tx,
      caller,
      part.map(({ request_id }) => request_id),
    );
    for (const row of rows) {
      if (mine && !mayAnswer(caller, row)) continue;
      summaries.push(row);
      if (summaries.length < page_size) continue;
      const at = part.find(({ request_id }) => request_id === row.request_id);
      const isLast = found.at(-1)?.request_id === row.request_id;
      return { summaries, next: isLast || !at ? null : [at.at, at.request_id] };
    }
    const last = part.at(-1);
    if (found.length <= step || !last) return { summaries, next: null };
    position = [last.at, last.request_id];
  }
  return { summaries, next: position };
}

/** A page of the requests that a caller may see. */
export interface RequestPage extends Partial<Counted> {
  requests: RequestRecord[];
  next_cursor?: string;
}

/**
 * A page of the requests that a caller may see. Without a count where only those are listed that the caller may answer.
 * @throws PlatformError BAD_REQUEST for the cursor of another list; REQUEST_TIMEOUT as `inKeyOrder`
 */
export async function listRequests(
  { db, secrets }: { db: Db; secrets: Pick<Secrets, 'macs'> },
  caller: Caller,
  query: RequestsGetRequest,
): Promise<RequestPage> {
  const { cursor, page_size: _size, ...filters } = query;
  const { tenant_id, credential_id, scopes } = caller;
  const list = [tenant_id, credential_id, viewOf(caller), scopes, filters];
  const cursors = createCursors(secrets, { purpose: 'request-cursor', list, schema: Position });
  const start = cursors.read(cursor);
  const { requests, next } = await inKeyOrder(db, tenant_id, async (tx) => {
    const walked = await walk(tx, caller, query, start);
    return { requests: await recordsOf(tx, caller, walked.summaries), next: walked.next };
  });
  const counted = query.mine ? {} : await countRows(db, listOf(caller, query));
  return { requests, ...(next && { next_cursor: cursors.make(next) }), ...counted };
}

const ONE = `SELECT q.request_id FROM input_requests q WHERE q.tenant_id = $1 AND ${OWN_REQUEST} AND q.request_id = $3`;

/** The summary of a request. @throws PlatformError NOT_FOUND, also for one that the caller may not see */
export async function readSummary(tx: Tx, caller: Caller, requestId: string): Promise<RequestSummary> {
  const [seen] = await tx.query(ONE, [caller.tenant_id, viewOf(caller), requestId]);
  const [summary] = seen ? await readSummaries(tx, caller, [requestId]) : [];
  if (!summary) throw new PlatformError('NOT_FOUND', 'There is no request of that request_id.');
  return summary;
}

/** Earlier decisions that are shown. */
const SIMILAR_MAX = 25;
const SIMILAR = `
  SELECT q.request_id FROM input_requests q
   WHERE q.tenant_id = $1 AND ${OWN_REQUEST} AND q.digest = $3 AND q.state IN ('resolved', 'expired') AND q.request_id <> $4
     AND q.requested_at < (SELECT o.requested_at FROM input_requests o WHERE o.tenant_id = $1 AND o.request_id = $4)
   ORDER BY q.requested_at DESC LIMIT ${SIMILAR_MAX}`;

/** Earlier requests about the same, which are over: of a tool call those of the same tool, arguments and executor. @throws PlatformError NOT_FOUND */
export function similarRequests(db: Db, caller: Caller, requestId: string): Promise<RequestRecord[]> {
  return inKeyOrder(db, caller.tenant_id, async (tx) => {
    const { digest } = await readSummary(tx, caller, requestId);
    const values = [caller.tenant_id, viewOf(caller), digest, requestId];
    const found = await tx.query<{ request_id: string }>(SIMILAR, values);
    const ids = found.map(({ request_id }) => request_id);
    return recordsOf(tx, caller, await readSummaries(tx, caller, ids));
  });
}

/** One request. @throws PlatformError NOT_FOUND */
export function getRequest(db: Db, caller: Caller, requestId: string): Promise<RequestRecord> {
  return db.tenant(caller.tenant_id, async (tx) => {
    const [record] = await recordsOf(tx, caller, [await readSummary(tx, caller, requestId)]);
    if (!record) throw new PlatformError('NOT_FOUND', 'There is no request of that request_id.');
    return record;
  });
}
