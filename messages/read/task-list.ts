import { z } from 'zod';
import type { Task } from '../../contracts/a2a/a2a.js';
import type { ListTasksRequest } from '../../contracts/a2a/a2a-1-requests.js';
import { actsAs, type Reader } from '../../contracts/permissions.js';
import { ownMessages } from '../../db/ownership.js';
import type { Db } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { countOf, findOwnMessage, openRequests } from './read.js';
import { readable } from './readable.js';
import { type TaskRow, taskOf } from './task.js';

/** The filters and the page of A2A's `ListTasks`. A `status` that the platform does not have matches no task. */
export type TaskQuery = ListTasksRequest;

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

/** The last task of a page: the time of its status in microseconds, and its id. The next page begins after it. */
const PageCursor = z.tuple([z.string().regex(/^\d{1,18}$/), z.string().min(1).max(200)]);

function readToken(token: string): z.infer<typeof PageCursor> {
  try {
    return PageCursor.parse(JSON.parse(Buffer.from(token, 'base64url').toString()));
  } catch {
    throw new PlatformError('INVALID_PARAMS', 'params.pageToken: is not the token of a page');
  }
}

const MICROSECONDS = '(extract(epoch FROM updated_at) * 1000000)::bigint';
const FROM = `FROM messages m WHERE tenant_id = $1 AND ($2::text IS NULL OR session_id = $2) AND ($3::text IS NULL OR state = $3)
  AND ($4::timestamptz IS NULL OR updated_at >= $4) AND ${ownMessages('m', '$5')}`;
/** Only the columns of a task, and artifacts only on request: a page of them can be large. */
const COLUMNS = `message_id, session_id, client_message_id, state, parts, turns, status_message, agent_type, want_agent_type, instance_id, trace_id,
  usage, error_code, error_message, updated_at, CASE WHEN $6 THEN artifacts ELSE '[]' END AS artifacts,
  ${MICROSECONDS}::text AS status_us`;
const PAGE = `SELECT ${COLUMNS} ${FROM}
  AND ($7::text IS NULL OR (${MICROSECONDS}, message_id) < ($7::bigint, $8))
  ORDER BY ${MICROSECONDS} DESC, message_id DESC LIMIT $9`;

/**
 * A page of the tasks that a reader sees. A task that changes between two pages moves to the front, so later pages do not contain it.
 * @throws PlatformError INVALID_PARAMS for a page token that is not valid
 */
export async function listTasks(db: Db, reader: Reader, query: TaskQuery): Promise<TaskPage> {
  const [afterUs, afterId] = query.pageToken === undefined ? [null, null] : readToken(query.pageToken);
  const tenantId = reader.tenant_id;
  const { contextId = null, status = null, statusTimestampAfter = null } = query;
  const filter = [tenantId, contextId, status, statusTimestampAfter, actsAs(reader)];
  return db.tenant(tenantId, async (tx) => {
    const totalSize = await countOf(tx, FROM, filter);
    const page = [...filter, query.includeArtifacts, afterUs, afterId, query.pageSize + 1];
    const rows = await tx.query<TaskRow & { status_us: string }>(PAGE, page);
    const shown = rows.slice(0, query.pageSize);
    const requests = await openRequests(tx, tenantId, shown);
    const last = rows.length > shown.length ? shown.at(-1) : undefined;
    return {
      tasks: shown.map((row) => {
        const { artifacts, ...task } = taskOf(readable(row), requests.get(row.message_id) ?? null, query);
        return query.includeArtifacts && artifacts ? { ...task, artifacts } : task;
      }),
      nextPageToken: last ? Buffer.from(JSON.stringify([last.status_us, last.message_id])).toString('base64url') : '',
      pageSize: query.pageSize,
      totalSize,
    };
  });
}
