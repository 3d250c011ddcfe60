import { z } from 'zod';
import type { Task } from '../../../contracts/a2a/a2a.js';
import type { ListTasksRequest } from '../../../contracts/a2a/a2a-1-requests.js';
import { isTerminal } from '../../../contracts/message-states.js';
import type { Reader } from '../../../contracts/permissions.js';
import { createCursors } from '../../../db/pages/cursors.js';
import { countRows, inKeyOrder, type KeyList } from '../../../db/pages/page.js';
import type { Db, Tx } from '../../../db/pool.js';
import { messageIdsOf } from '../../../db/session-ids.js';
import { PlatformError } from '../../../runtime/errors.js';
import type { IdRange } from '../../../runtime/ids.js';
import type { Secrets } from '../../../runtime/secrets.js';
import { findOwnMessage } from '../read.js';
import { taskOf } from '../task.js';
import { type PageMessage, readPageMessages } from './page-rows.js';
import {
  CHANGED_US,
  FILTER,
  type FoundTasks,
  filterValues,
  listValues,
  type TaskFilter,
  type TaskKey,
  type TaskPosition,
  walkTasks,
} from './task-walk.js';

const Id = z.string().max(200);
const Position: z.ZodType<TaskPosition> = z.object({
  after: z.object({ changedUs: z.int().min(0), id: Id }).nullable(),
  fromId: Id.nullable(),
});
const notOfList = () =>
  new PlatformError('INVALID_PARAMS', 'params.pageToken: is not the token of a page of this list');

/** A page of tasks, the newest status first. `nextPageToken` is empty on the last one; `totalSize` counts all pages. */
export interface TaskPage {
  tasks: Task[];
  nextPageToken: string;
  pageSize: number;
  totalSize: number;
}

/** The A2A task of a message. @throws PlatformError TASK_NOT_FOUND when the reader sees none of that id */
export async function findTask(
  db: Db,
  reader: Reader,
  taskId: string,
  options: { historyLength?: number | undefined } = {},
): Promise<Task> {
  const found = await findOwnMessage(db, reader, taskId);
  if (!found) throw new PlatformError('TASK_NOT_FOUND', 'Task not found: there is none of that id.');
  return taskOf(found.row, found.request, options);
}

const ALL = `messages m WHERE ${FILTER}`;
/** Messages that are not over are few. */
const RUNNING = `running_messages r CROSS JOIN LATERAL (SELECT * FROM messages x WHERE x.tenant_id = r.tenant_id
    AND x.message_id = r.message_id LIMIT 1) AS m WHERE r.tenant_id = $1 AND r.state = $3 AND ${FILTER}`;

/** The source of messages for a filter that few can match; null if all of the tenant's may match. */
function smallSourceFor({ status }: Pick<TaskFilter, 'status'>): string | null {
  return status !== null && !isTerminal(status) ? RUNNING : null;
}

/** The range of ids of a session's messages; not looked up for a filter that few can match. */
async function idsOf(db: Db, filter: Omit<TaskFilter, 'ids'>): Promise<IdRange> {
  const { reader, contextId } = filter;
  if (contextId === null || smallSourceFor(filter)) return { least: null, bound: null };
  return messageIdsOf(db, reader.tenant_id, contextId);
}

/** Reads all messages that match, and sorts them by the time of their last change. */
async function sortTasks(
  tx: Tx,
  from: string,
  filter: TaskFilter,
  { after }: TaskPosition,
  pageSize: number,
): Promise<FoundTasks> {
  const text = `SELECT m.message_id AS id, ${CHANGED_US} AS "changedUs" FROM ${from}
      AND ($9::bigint IS NULL OR (${CHANGED_US}, m.message_id) < ($9, $10))
    ORDER BY ${CHANGED_US} DESC, m.message_id DESC LIMIT $11`;
  const values = [...filterValues(filter), after?.changedUs ?? null, after?.id ?? null, pageSize + 1];
  const tasks = await tx.query<TaskKey & { [column: string]: unknown }>(text, values);
  return {
    tasks,
    next: (shown) => (shown < tasks.length ? { after: tasks[shown - 1] ?? after, fromId: null } : null),
  };
}

/** Messages that changed since `$4`: those with a late change, and those whose id is so young that the change is not late. */
const SINCE = `(SELECT m.message_id FROM messages m WHERE ${FILTER} AND m.message_id >= late_bound($4) AND m.message_id >= late_bound(m.updated_at)
  UNION ALL SELECT m.message_id FROM late_changes l CROSS JOIN LATERAL (SELECT * FROM messages x WHERE x.tenant_id = l.tenant_id
    AND x.message_id = l.message_id LIMIT 1) AS m WHERE l.tenant_id = $1 AND l.changed_at >= $4 AND ${FILTER}) AS m`;

function allOf(filter: TaskFilter): KeyList {
  const from = smallSourceFor(filter) ?? (filter.changedSince === null ? ALL : SINCE);
  const appendOnly = filter.status === null || isTerminal(filter.status);
  return { key: 'm.message_id', from, orderBy: 'm.message_id DESC', values: filterValues(filter), appendOnly };
}

/** The messages that fit on a page: those before the first one for whose content there is no room. */
function fitting(messages: PageMessage[]): PageMessage[] {
  const end = messages.findIndex(({ whole }, place) => place > 0 && !whole);
  return end < 0 ? messages : messages.slice(0, end);
}

function listed({ row, request }: PageMessage, query: ListTasksRequest): Task {
  const { artifacts, ...task } = taskOf(row, request, query);
  return query.includeArtifacts && artifacts ? { ...task, artifacts } : task;
}

/**
 * A page of the tasks that a reader sees. It may have fewer than `pageSize`, and even none, while `nextPageToken` leads on: where their content
 * is large, or where hardly any task fits. A task that changes between two pages moves to the front, so later pages do not contain it.
 * @throws PlatformError INVALID_PARAMS for a page token that is not of this list; REQUEST_TIMEOUT as `inKeyOrder`
 */
export async function listTasks(
  { db, secrets }: { db: Db; secrets: Pick<Secrets, 'macs'> },
  reader: Reader,
  query: ListTasksRequest & { agentType?: string | null },
): Promise<TaskPage> {
  const {
    agentType = null,
    contextId = null,
    status = null,
    statusTimestampAfter = null,
    pageSize,
    includeArtifacts,
  } = query;
  const wanted = { reader, contextId, status, changedSince: statusTimestampAfter, agentType };
  const list = listValues(wanted);
  const tokens = createCursors(secrets, { purpose: 'task-page', list, schema: Position, refusal: notOfList });
  const position = tokens.read(query.pageToken) ?? { after: null, fromId: null };
  const filter: TaskFilter = { ...wanted, ids: await idsOf(db, wanted) };
  const few = smallSourceFor(filter);
  const page = await inKeyOrder(db, reader.tenant_id, async (tx) => {
    const found = few
      ? await sortTasks(tx, few, filter, position, pageSize)
      : await walkTasks(tx, filter, position, pageSize);
    const shown = found.tasks.slice(0, pageSize).map(({ id }) => id);
    const messages = fitting(await readPageMessages(tx, reader.tenant_id, shown, { artifacts: includeArtifacts }));
    return { messages, next: found.next(messages.length) };
  });
  const { count: totalSize } = await countRows(db, allOf(filter));
  return {
    tasks: page.messages.map((message) => listed(message, query)),
    nextPageToken: page.next ? tokens.make(page.next) : '',
    pageSize,
    totalSize,
  };
}
