import type { MessageRecord, MessagesGetRequest } from '../../../contracts/api/messages.js';
import { isTerminal } from '../../../contracts/message-states.js';
import type { Reader } from '../../../contracts/permissions.js';
import { ownMessages, viewOf } from '../../../db/ownership.js';
import { KeyPosition, positionAfter, readCursorPage } from '../../../db/pages/cursor-page.js';
import { type KeyList, readSlice } from '../../../db/pages/page.js';
import type { Db, Tx } from '../../../db/pool.js';
import { messageIdsOf } from '../../../db/session-ids.js';
import { type IdRange, idBound, idRange, inBoth, newestMonths } from '../../../runtime/ids.js';
import { countInstanceMessages, instanceMessageIds } from './instance-messages.js';
import { filterValues, OF_ALL, ofRunning } from './list-filters.js';
import { type ListDeps, listCursors, listedMessages, type MessagePage } from './list-page.js';
import { searchText } from './text-search.js';
import { listWaiting } from './waiting-list.js';

/** A message that was only assigned to the instance, and never dispatched to it, is not listed. */
const ALL = `messages m WHERE ${OF_ALL} AND ($5::text IS NULL OR EXISTS (
  SELECT 1 FROM dispatches d WHERE d.tenant_id = $1 AND d.instance_id = $5 AND d.message_id = m.message_id))`;

/** Messages that are not over: few, however many there ever were. */
const RUNNING = `running_messages m WHERE ${ofRunning()}`;

const OF_INSTANCE: KeyList['walk'] = {
  keys: (tx, values, limit, offset) => instanceMessageIds(tx, { where: OF_ALL, values }, limit, offset),
  count: (tx, values, most) => countInstanceMessages(tx, { where: OF_ALL, values }, most),
};

const isRunningState = (state: string | undefined) => state !== undefined && !isTerminal(state);

/** The range of ids in which the messages of a query can be. */
async function rangeOf(
  db: Db,
  reader: Reader,
  { session_id, state, since, until }: MessagesGetRequest,
): Promise<IdRange> {
  const ofTime = idRange((atMs) => idBound('msg', atMs), { from: since, to: until });
  if (session_id === undefined || isRunningState(state)) return ofTime;
  return inBoth(ofTime, await messageIdsOf(db, reader.tenant_id, session_id));
}

/** The messages in a range that a reader may see and that match, the newest first. */
function matching(reader: Reader, query: MessagesGetRequest, range: IdRange): KeyList {
  const isRunning = isRunningState(query.state);
  const ofInstance = query.instance_id !== undefined;
  const upToNow = { ...range, bound: range.bound ?? idBound('msg', Date.now()) };
  const newest = isRunning || ofInstance ? null : newestMonths(upToNow, 'msg');
  return {
    key: 'm.message_id',
    from: isRunning ? RUNNING : ALL,
    orderBy: 'm.message_id DESC',
    values: filterValues(reader, query, range),
    newest: newest === null ? undefined : filterValues(reader, query, { ...range, least: newest }),
    appendOnly: !isRunning,
    ...(ofInstance && !isRunning && { walk: OF_INSTANCE }),
  };
}

/**
 * A page of messages, the newest first; of those that wait, those that have waited longest first.
 * @throws PlatformError REQUEST_TIMEOUT as `readPage`; BAD_REQUEST for the cursor of another list
 */
export async function listMessages(deps: ListDeps, reader: Reader, query: MessagesGetRequest): Promise<MessagePage> {
  if (query.waits_for !== undefined || query.waited_ms !== undefined) return listWaiting(deps, reader, query);
  const { db } = deps;
  const { page_size, text } = query;
  const cursors = listCursors(deps, reader, query, KeyPosition);
  const range = await rangeOf(db, reader, query);
  const before = (id: string | null) => matching(reader, query, inBoth(range, { least: null, bound: id }));
  const rowsOf = (tx: Tx, ids: string[]) => listedMessages(tx, reader.tenant_id, ids);
  if (text !== undefined) {
    const start = cursors.read(query.cursor);
    const found = await searchText(db, before, { text, limit: page_size, before: start?.[0] ?? null });
    const rows = await db.tenant(reader.tenant_id, (tx) => rowsOf(tx, found.ids));
    const count = (start?.[1] ?? 0) + rows.length;
    if (found.next === null) return { rows, count };
    const counted = { count, count_estimated: true as const };
    return { rows, ...counted, next_cursor: cursors.make(positionAfter(found.next, counted)) };
  }
  return readCursorPage(db, before, query, { cursors, rowsOf, keyOf: ({ message_id }) => message_id });
}

/** A page of the messages that a reader may see and that wait for input, the oldest request first. @throws PlatformError REQUEST_TIMEOUT as `readSlice` */
export async function pendingMessages(
  db: Db,
  reader: Reader,
  query: { session_id?: string; user_id?: string; credential_id?: string; limit: number; offset: number },
): Promise<{ total: number; messages: MessageRecord[] }> {
  const { tenant_id } = reader;
  const pending: KeyList = {
    key: 'r.message_id', // a message has one open request at most
    from: `input_requests r WHERE r.tenant_id = $1 AND r.state = 'pending' AND r.message_id IS NOT NULL AND ($2::text IS NULL OR r.session_id = $2)
      AND (num_nonnulls($3::text, $4::text, $5::text) = 0 OR EXISTS (SELECT 1 FROM messages m WHERE m.tenant_id = $1 AND m.message_id = r.message_id
        AND ($3::text IS NULL OR m.user_id = $3) AND ($4::text IS NULL OR m.credential_id = $4)
        AND ${ownMessages('m', '$5')}))`,
    orderBy: 'r.requested_at, r.request_id',
    values: [tenant_id, query.session_id ?? null, query.user_id ?? null, query.credential_id ?? null, viewOf(reader)],
    bounded: true, // by TENANT_MAX_WAITING
  };
  const { count, rows } = await readSlice(db, pending, query, (tx, messageIds) =>
    listedMessages(tx, tenant_id, messageIds),
  );
  return { total: count, messages: rows };
}
