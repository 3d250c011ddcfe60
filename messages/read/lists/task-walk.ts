import type { Reader } from '../../../contracts/permissions.js';
import { messagesInState, messagesOfSession } from '../../../db/message-filters.js';
import { ownMessages, viewOf } from '../../../db/ownership.js';
import type { Tx } from '../../../db/pool.js';
import { type IdRange, idBound, inBoth, newestMonths } from '../../../runtime/ids.js';

/**
 * The tasks of a tenant by the time of their last change, the newest first, without an index on that time, which every message would have to write twice. A
 * change is *late* when it comes more than five seconds after the id of its message was made. The table `late_changes` has the messages whose last change is
 * late, in order. The changes of all other messages are in almost the order of their ids, so messages are read by id until no later one can belong before those
 * that were found.
 */

/** As in `late_bound` (db/functions/messages/late_changes.sql). */
const LATE_MS = 5_000;
/** How far the clocks of processes, which make ids, may be ahead of the database's, in milliseconds. */
const CLOCKS_DIFFER_MS = 60_000;
/** How many messages the first read by id takes for each task of the page. Each further read takes twice as many, up to `ROWS_PER_READ_MAX`. */
const ROWS_PER_TASK = 2;
const ROWS_PER_READ_MAX = 10_000;
/** Late changes that a page reads at most. */
const LATE_ROWS_MAX = 2_000;
/** After so many rows a page ends with the tasks that it has found, for filters that hardly any task fits. */
const ROWS_MAX = 20_000;

/** Which tasks of a tenant are listed. */
export interface TaskFilter {
  reader: Reader;
  contextId: string | null;
  status: string | null;
  /** ISO 8601. */
  changedSince: string | null;
  /** The type that has the task, or is asked for. */
  agentType: string | null;
  /** The range of ids in which its messages are, as far as that is known. */
  ids: IdRange;
}

/** A task in the order of a list: `changedUs` is the time of its last change, in microseconds since 1970. */
export interface TaskKey {
  changedUs: number;
  id: string;
}

/** Where a page begins. */
export interface TaskPosition {
  /** After this task; null: with the newest one. */
  after: TaskKey | null;
  /** Reading by id goes on with this id; null: with the newest one. */
  fromId: string | null;
}

/** What was found for a page. */
export interface FoundTasks {
  /** In the order of the list; there may be more than fit on the page. */
  tasks: TaskKey[];
  /** Where the next page begins when the first `shown` of the tasks are on this one; null when nothing is left. */
  next(shown: number): TaskPosition | null;
}

export const CHANGED_US = '(extract(epoch FROM m.updated_at) * 1000000)::bigint';
/** The condition that the id of a message is in the filter's range. @param alias of `messages` */
const inRange = (alias: string) =>
  `($7::text IS NULL OR ${alias}.message_id >= $7) AND ($8::text IS NULL OR ${alias}.message_id < $8)`;
/** The conditions of a filter on messages `m`: `filterValues` are $1 to $8. */
export const FILTER = `m.tenant_id = $1 AND ($2::text IS NULL OR ${messagesOfSession('m', '$1', '$2')}) AND ($3::text IS NULL OR ${messagesInState('m', '$3')})
  AND ($4::timestamptz IS NULL OR m.updated_at >= $4) AND ${ownMessages('m', '$5')}
  AND ($6::text IS NULL OR coalesce(m.agent_type, m.want_agent_type) = $6) AND ${inRange('m')}`;

/** The values that identify a list of tasks: the tenant, what the reader may see, and the filters. */
export function listValues(filter: Omit<TaskFilter, 'ids'>): [string, ...unknown[]] {
  const { reader, contextId, status, changedSince, agentType } = filter;
  return [reader.tenant_id, contextId, status, changedSince, viewOf(reader), agentType];
}

/** The values of `FILTER`. */
export function filterValues(filter: TaskFilter): [string, ...unknown[]] {
  return [...listValues(filter), filter.ids.least, filter.ids.bound];
}

/** Whether a change is late and in `late_changes`. A late change that is not there was not written by the platform, and is found by id. */
const IS_LATE = `m.message_id < late_bound(m.updated_at)
  AND EXISTS (SELECT 1 FROM late_changes l WHERE l.tenant_id = m.tenant_id AND l.message_id = m.message_id)`;

/** The only conditions on messages `x` that have an index in the order of ids. With others the cost of a read would have no bound. */
const IN_INDEX = `CASE WHEN $2::text IS NOT NULL THEN ${messagesOfSession('x', '$1', '$2')}
  WHEN $3::text IN ('failed', 'canceled') THEN x.unsuccessful_state = $3 ELSE true END`;

const TIME = (us: string) => `timestamptz 'epoch' + ${us}::bigint * interval '1 microsecond'`;
/** $9 to $12: the ids to read, and how many. $13: changes before this time are not wanted. */
const READ_BY_ID = `
  SELECT count(*) AS rows, min(m.message_id) AS last_id,
         coalesce(jsonb_agg(jsonb_build_object('id', m.message_id, 'changedUs', ${CHANGED_US}))
           FILTER (WHERE ($13::bigint IS NULL OR m.updated_at >= ${TIME('$13')}) AND ${FILTER} AND NOT (${IS_LATE})), '[]') AS tasks
    FROM (SELECT * FROM messages x WHERE x.tenant_id = $1 AND ${IN_INDEX} AND ${inRange('x')} AND ($9::text IS NULL OR x.message_id <= $9)
      AND ($10::text IS NULL OR x.message_id < $10) AND ($11::text IS NULL OR x.message_id >= $11) ORDER BY x.message_id DESC LIMIT $12) AS m`;

const READ_LATE = `
  SELECT l.message_id AS id, (extract(epoch FROM l.changed_at) * 1000000)::bigint AS "changedUs" FROM late_changes l
   WHERE l.tenant_id = $1 AND ($2::text IS NULL OR l.session_id = $2) AND ($3::timestamptz IS NULL OR l.changed_at >= $3)
     AND ($4::bigint IS NULL OR (l.changed_at, l.message_id) < (${TIME('$4')}, $5))
   ORDER BY l.changed_at DESC, l.message_id DESC LIMIT ${LATE_ROWS_MAX}`;
/** Those of `$9` that fit the filter. It is a statement of its own, so that it is planned for the months of these ids. */
const FITTING = `SELECT m.message_id AS id FROM messages m WHERE ${FILTER} AND m.message_id = ANY ($9)`;

/** Below zero where `a` comes first. */
function inOrder(a: TaskKey, b: TaskKey): number {
  if (a.changedUs !== b.changedUs) return b.changedUs - a.changedUs;
  return a.id === b.id ? 0 : a.id > b.id ? -1 : 1;
}

const lateBound = (changedUs: number) => idBound('msg', Math.floor(changedUs / 1_000) - LATE_MS);

/** Reads messages by id. */
class IdReader {
  /** Changes that are not late, of messages that fit the filter and come after the position. */
  readonly tasks: TaskKey[] = [];
  /** All messages from here on have been read; null before the first read. */
  #readFrom: string | null = null;
  isDone = false;
  rows = 0;
  /** All tasks with this id or a later one are in `tasks`. Only reads without `last` move it, because they leave none out. */
  #completeFrom = '';
  #limit: number;

  constructor(
    private readonly tx: Tx,
    private readonly filter: TaskFilter,
    private readonly position: TaskPosition,
    pageSize: number,
  ) {
    this.#limit = pageSize * ROWS_PER_TASK;
  }

  /** Reads the next messages. @param last the last task that is wanted: messages too old to come before it are not read */
  async read(last: TaskKey | undefined): Promise<void> {
    const { filter, position } = this;
    const since = filter.changedSince === null ? null : lateBound(Date.parse(filter.changedSince) * 1_000);
    const bound = last ? lateBound(last.changedUs) : since;
    // A statement is planned for each month that it may read. So the first one reads only the newest months, which mostly are enough.
    const newest = this.#readFrom === null ? this.#newest(bound) : null;
    const range = [position.fromId, this.#readFrom, newest ?? bound, this.#limit, last?.changedUs ?? null];
    const [read] = await this.tx.query<{ rows: number; last_id: string | null; tasks: TaskKey[] }>(READ_BY_ID, [
      ...filterValues(filter),
      ...range,
    ]);
    if (!read) throw new Error('an aggregate without a row');
    const { after } = position;
    this.tasks.push(...read.tasks.filter((task) => after === null || inOrder(after, task) < 0));
    this.rows += read.rows;
    const isAll = read.rows < this.#limit;
    if (newest !== null && isAll) this.#readFrom = newest;
    else if (last && isAll) this.#readFrom = bound;
    else if (isAll) this.isDone = true;
    else this.#readFrom = read.last_id;
    if (!last) this.#completeFrom = this.#readFrom ?? '';
    this.#limit = Math.min(this.#limit * 2, ROWS_PER_READ_MAX);
  }

  /** The first id of the newest months of the range that is to be read; null if they are the whole range. */
  #newest(bound: string | null): string | null {
    const { ids } = this.filter;
    const { least } = inBoth(ids, { least: bound, bound: null });
    return newestMonths({ least, bound: this.position.fromId ?? ids.bound }, 'msg');
  }

  /** Whether no message that is still to be read can come before this task. */
  isBefore({ changedUs }: TaskKey): boolean {
    return this.isDone || (this.#readFrom !== null && lateBound(changedUs) >= this.#readFrom);
  }

  /**
   * The id from which the next page reads on after a task: that of the newest message that is still to be shown. No message that comes after the task in the
   * list was made after the task's last change.
   */
  resumeAfter(after: TaskKey | null): string {
    const left = this.tasks.filter((task) => after === null || inOrder(after, task) < 0).map(({ id }) => id);
    const newest = [...left, this.isDone ? '' : this.#completeFrom].sort().at(-1) ?? '';
    const bounds = after === null ? [] : [idBound('msg', Math.ceil(after.changedUs / 1_000) + CLOCKS_DIFFER_MS)];
    return [newest, ...bounds].sort()[0] ?? '';
  }
}

/** Late changes after the position. `horizon`: the last one that was read when there may be more. */
async function readLate(tx: Tx, filter: TaskFilter, { after }: TaskPosition) {
  const { reader, contextId, changedSince } = filter;
  const values = [reader.tenant_id, contextId, changedSince, after?.changedUs ?? null, after?.id ?? null];
  const rows = await tx.query<TaskKey & { [column: string]: unknown }>(READ_LATE, values);
  if (rows.length === 0) return { tasks: [], horizon: null };
  const ids = rows.map(({ id }) => id);
  const fitting = await tx.query<{ id: string }>(FITTING, [...filterValues(filter), ids]);
  const fits = new Set(fitting.map(({ id }) => id));
  const tasks = rows.filter(({ id }) => fits.has(id)).map(({ id, changedUs }) => ({ id, changedUs }));
  return { tasks, horizon: rows.length === LATE_ROWS_MAX ? (rows.at(-1) ?? null) : null };
}

/** The next tasks of a tenant from a position on. There may be fewer than `pageSize`, or none, although further ones follow. */
export async function walkTasks(
  tx: Tx,
  filter: TaskFilter,
  position: TaskPosition,
  pageSize: number,
): Promise<FoundTasks> {
  const late = await readLate(tx, filter, position);
  const byId = new IdReader(tx, filter, position, pageSize);
  const isRead = (task: TaskKey) => late.horizon === null || inOrder(task, late.horizon) <= 0;
  let last: TaskKey | undefined;
  let tasks: TaskKey[] = [];
  let isEnough = false;
  while (!isEnough) {
    await byId.read(last);
    const found = [...late.tasks, ...byId.tasks].filter(isRead).sort(inOrder);
    tasks = found.filter((task) => byId.isBefore(task));
    last = found[pageSize] ?? late.horizon ?? undefined;
    // At `ROWS_MAX` the page may stop only if it shows a task or has found none by id: else the next page would find the same, and get no further.
    const mayStop = byId.rows >= ROWS_MAX && (tasks.length > 0 || byId.tasks.length === 0);
    isEnough = byId.isDone || (last !== undefined && byId.isBefore(last)) || mayStop;
  }
  return {
    tasks,
    next: (shown) => {
      const isAll = shown === tasks.length;
      if (isAll && byId.isDone && late.horizon === null) return null;
      const passed = isAll && late.horizon && byId.isBefore(late.horizon) ? late.horizon : undefined;
      const after = passed ?? tasks[shown - 1] ?? position.after;
      return { after, fromId: byId.resumeAfter(after) };
    },
  };
}
