import { isTerminal, type MessageRecord, type MessagesGetRequest } from '../../contracts/api/messages.js';
import type { Reader } from '../../contracts/permissions.js';
import { messagesInState, messagesOfSession } from '../../db/message-filters.js';
import { ownMessages, viewOf } from '../../db/ownership.js';
import { type KeyList, type Page, readPage, readSlice } from '../../db/pages/page.js';
import type { Db } from '../../db/pool.js';
import { messageIdsOf } from '../../db/session-ids.js';
import { type IdRange, idBound, idRange, inBoth, newestMonths } from '../../runtime/ids.js';
import { countInstanceMessages, instanceMessageIds } from './instance-messages.js';
import { type PageMessage, readPageMessages } from './page-rows.js';
import { recordOf } from './task.js';

/** Planned with the values, so that the plan has no trace of absent filters. `$5`: who serves it, or served it last. */
const MATCHING = `m.tenant_id = $1
  AND ($4::text IS NULL OR coalesce(m.agent_type, m.want_agent_type) = $4) AND ($5::text IS NULL OR m.instance_id = $5)
  AND ($7::timestamptz IS NULL OR m.created_at >= $7) AND ($8::timestamptz IS NULL OR m.created_at < $8)
  AND ($10::text IS NULL OR m.message_id >= $10) AND ($11::text IS NULL OR m.message_id < $11)`;

/** For whom, by whom and as what they were sent. */
const sentAs = (
  alias: string,
) => `($12::text IS NULL OR ${alias}.user_id = $12) AND ($13::text IS NULL OR ${alias}.credential_id = $13)
  AND ($14::text IS NULL OR ${alias}.client_message_id = $14)`;

const OF_ALL = `${MATCHING} AND ($3::text IS NULL OR ${messagesInState('m', '$3')}) AND ($2::text IS NULL OR ${messagesOfSession('m', '$1', '$2')})
  AND ($6::text IS NULL OR m.error_code = $6) AND ${sentAs('m')} AND ${ownMessages('m', '$9')}`;

/** A message that was only assigned to the instance, and never dispatched to it, is not listed. */
const ALL = `messages m WHERE ${OF_ALL} AND ($5::text IS NULL OR EXISTS (
  SELECT 1 FROM dispatches d WHERE d.tenant_id = $1 AND d.instance_id = $5 AND d.message_id = m.message_id))`;

/** Messages that are not over, and so have no error: few, however many there ever were. */
const RUNNING = `running_messages m WHERE ${MATCHING} AND m.state = $3 AND ($2::text IS NULL OR m.session_id = $2) AND $6::text IS NULL
  AND (num_nonnulls($9::text, $12::text, $13::text, $14::text) = 0 OR EXISTS (
    SELECT 1 FROM messages o WHERE o.tenant_id = m.tenant_id AND o.message_id = m.message_id AND ${sentAs('o')} AND ${ownMessages('o', '$9')}))`;

/** The messages that a reader may see and that match, the newest first. */
async function matching(db: Db, reader: Reader, query: MessagesGetRequest): Promise<KeyList> {
  const { session_id, state, agent_type, instance_id, error_code, since, until } = query;
  const isRunning = state !== undefined && !isTerminal(state);
  const ofTime = idRange((atMs) => idBound('msg', atMs), { from: since, to: until });
  const inMonths = session_id !== undefined && !isRunning;
  const range = inMonths ? inBoth(ofTime, await messageIdsOf(db, reader.tenant_id, session_id)) : ofTime;
  const filters = [session_id, state, agent_type, instance_id, error_code, since, until, viewOf(reader)];
  const valuesOf = ({ least, bound }: IdRange): KeyList['values'] => [
    reader.tenant_id,
    ...filters.map((value) => value ?? null),
    least,
    bound,
    query.user_id ?? null,
    query.credential_id ?? null,
    query.client_message_id ?? null,
  ];
  const upToNow = { ...range, bound: range.bound ?? idBound('msg', Date.now()) };
  const newest = isRunning || instance_id !== undefined ? null : newestMonths(upToNow, 'msg');
  return {
    key: 'm.message_id',
    from: isRunning ? RUNNING : ALL,
    orderBy: 'm.message_id DESC',
    values: valuesOf(range),
    newest: newest === null ? undefined : valuesOf({ ...range, least: newest }),
    appendOnly: !isRunning,
    ...(instance_id !== undefined && !isRunning && { walk: OF_INSTANCE }),
  };
}

const OF_INSTANCE: KeyList['walk'] = {
  keys: (tx, values, limit, offset) => instanceMessageIds(tx, { where: OF_ALL, values }, limit, offset),
  count: (tx, values, most) => countInstanceMessages(tx, { where: OF_ALL, values }, most),
};

/** A message of a list: with its content, or marked as `truncated`. */
function listed({ row, request, whole }: PageMessage): MessageRecord {
  const record = recordOf(row, request);
  return whole ? record : { ...record, task_data: { ...record.task_data, history: [] }, truncated: true };
}

/** A page of messages, newest first. @throws PlatformError REQUEST_TIMEOUT as `readPage` */
export async function listMessages(db: Db, reader: Reader, query: MessagesGetRequest): Promise<Page<MessageRecord>> {
  return readPage(db, await matching(db, reader, query), query, async (tx, messageIds) =>
    (await readPageMessages(tx, reader.tenant_id, messageIds)).map(listed),
  );
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
  const { count, rows } = await readSlice(db, pending, query, async (tx, messageIds) =>
    (await readPageMessages(tx, tenant_id, messageIds)).map(listed),
  );
  return { total: count, messages: rows };
}
