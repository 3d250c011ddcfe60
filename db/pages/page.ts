import { LRUCache } from 'lru-cache';
import { LIMITS } from '../../contracts/limits.js';
import { PlatformError } from '../../runtime/errors.js';
import { isTimedOut } from '../errors.js';
import type { Db, Tx } from '../pool.js';

/** Which page of a list: `page` from 1 on, `page_size` items each. */
export interface PageRequest {
  page: number;
  page_size: number;
}

/** How many rows a list has: exact up to `LIMITS.countExactMax`. Beyond that, or where counting takes too long, an estimate, marked as one. */
export interface Counted {
  count: number;
  count_estimated?: true;
}

/** A page of a list, and how many rows the whole list has. */
export interface Page<Row> extends Counted {
  rows: Row[];
}

/**
 * The keys of a list in their order. They come from an index alone where the filters allow it, so that rows which are counted or skipped
 * are never read.
 */
export interface KeyList {
  /** The column that identifies a row within the tenant. */
  key: string;
  /** What follows FROM, with the WHERE clause. */
  from: string;
  orderBy: string;
  /** The values of `from`; the first is the tenant. */
  values: [tenantId: string, ...unknown[]];
  /**
   * Values for the first rows alone. A page of a list that was too long to count a moment ago is looked for there first, since a statement is
   * planned for each month that it may read.
   */
  newest?: KeyList['values'] | undefined;
  /** Rows that match once match for good, so that a list which was too long to count still is a minute later. */
  appendOnly?: boolean;
  /** Something else bounds the number of rows, and all are counted. */
  bounded?: boolean;
  /** Reads the keys where a statement of `from` in its order would cost more the more rows there are; `from` then serves the estimate alone. */
  walk?: {
    keys(tx: Tx, values: KeyList['values'], limit: number, offset: number): Promise<string[]>;
    /** Null when there are more than `most`, or it would take too long. */
    count(tx: Tx, values: KeyList['values'], most: number): Promise<number | null>;
    /** What the planner estimates instead of `from`, and how many items a row of it stands for. */
    estimate?: { from: string; values: KeyList['values']; perRow(tx: Tx): Promise<number> };
  };
}

/** How long a statement that reads keys may take, in milliseconds. */
const LIST_MS = 10_000;

/** Estimates of the lists that were too long to count. */
const estimates = new LRUCache<string, number>({ max: 1_000, ttl: 60_000 });

/** For a transaction that reads few of many rows: no scan of a table, however many of its rows are the tenant's. */
export const BY_INDEX = 'SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off';

/** Limits the statements of a transaction, where the settings do not limit them to less: a longer one would look like a lost connection. */
export function limitMs({ timeoutMs }: Pick<Db, 'timeoutMs'>, ms: number): string {
  return `SET LOCAL statement_timeout = ${Math.min(ms, timeoutMs)}`;
}

/**
 * Without statistics, as after a restore or a bulk load, Postgres would sort all keys instead of
 * walking an index in its order.
 */
const walkIndexes = (db: Pick<Db, 'timeoutMs'>) => `${BY_INDEX}; ${limitMs(db, LIST_MS)}`;

const keysOf = ({ key, from, orderBy }: KeyList) => `SELECT ${key} AS key FROM ${from} ORDER BY ${orderBy}`;

async function readKeys(tx: Tx, list: KeyList, limit: number, offset: number): Promise<string[]> {
  const { newest, values } = list;
  const keys = newest && isKnownToBeLong(list) ? await keysAmong(tx, list, newest, limit, offset) : [];
  return keys.length === limit ? keys : keysAmong(tx, list, values, limit, offset);
}

async function keysAmong(tx: Tx, list: KeyList, values: KeyList['values'], limit: number, offset: number) {
  if (list.walk) return list.walk.keys(tx, values, limit, offset);
  const text = `${keysOf(list)} LIMIT $${values.length + 1} OFFSET $${values.length + 2}`;
  const rows = await tx.query<{ key: string }>(text, [...values, limit, offset]);
  return rows.map(({ key }) => key);
}

/** The number of rows; null when there are more than are counted. */
async function countExactly(tx: Tx, list: KeyList): Promise<number | null> {
  if (list.walk) return list.walk.count(tx, list.values, LIMITS.countExactMax);
  const limit = list.bounded ? 'ALL' : LIMITS.countExactMax + 1;
  const text = `SELECT count(*) AS count FROM (${keysOf(list)} LIMIT ${limit}) AS counted`;
  const [counted] = await tx.query<{ count: number }>(text, list.values);
  const count = counted?.count ?? 0;
  return !list.bounded && count > LIMITS.countExactMax ? null : count;
}

/**
 * The planner's estimate, from statistics and without reading a row. As the platform's role, because row-level security repeats the
 * tenant's condition for the tenant's role, and the planner would take its share twice.
 */
async function estimateRows(db: Db, list: KeyList): Promise<number> {
  const { from, values } = list.walk?.estimate ?? list;
  const text = `EXPLAIN (FORMAT JSON) SELECT 1 FROM ${from}`;
  type Explained = { 'QUERY PLAN': { Plan: { 'Plan Rows': number } }[] };
  const [row] = await db.system((tx) => tx.query<Explained>(text, values));
  const { perRow } = list.walk?.estimate ?? {};
  const items = (perRow && (await inTime(db, values[0], perRow))) ?? 1;
  return Math.round((row?.['QUERY PLAN'][0]?.Plan['Plan Rows'] ?? 0) * items);
}

const idOf = ({ from, values }: KeyList) => JSON.stringify([from, values]);

/** Whether the list was too long to count a moment ago, and so still is. */
const isKnownToBeLong = (list: KeyList) => list.appendOnly === true && estimates.has(idOf(list));

/** The number that was counted, or an estimate if `count` is null. @param atLeast how many rows the page shows that there are */
async function counted(db: Db, list: KeyList, count: number | null, atLeast: number): Promise<Counted> {
  if (count !== null) return { count };
  const known = list.appendOnly ? estimates.get(idOf(list)) : undefined;
  const estimate = known ?? (await estimateRows(db, list));
  if (list.appendOnly && known === undefined) estimates.set(idOf(list), estimate);
  return { count: Math.max(estimate, atLeast), count_estimated: true };
}

/** Runs `work` in a transaction that reads keys. @returns undefined when one of its statements takes longer than `LIST_MS` */
async function inTime<T>(db: Db, tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T | undefined> {
  try {
    return await db.tenant(tenantId, async (tx) => {
      await tx.query(walkIndexes(db));
      return work(tx);
    });
  } catch (error) {
    if (isTimedOut(error)) return undefined;
    throw error;
  }
}

function tooLong(): PlatformError {
  const text = 'The list took too long to read. Ask for an earlier page, for one session, or for a shorter time.';
  return new PlatformError('REQUEST_TIMEOUT', text);
}

/** Runs `work` in a transaction that reads keys in the order of an index. @throws PlatformError REQUEST_TIMEOUT when a statement takes over ten seconds */
export async function inKeyOrder<T extends object>(db: Db, tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
  const result = await inTime(db, tenantId, work);
  if (result === undefined) throw tooLong();
  return result;
}

/** The number of all rows of a list. */
export async function countRows(db: Db, list: KeyList): Promise<Counted> {
  if (isKnownToBeLong(list)) return counted(db, list, null, 0);
  const result = await inTime(db, list.values[0], async (tx) => ({ count: await countExactly(tx, list) }));
  return counted(db, list, result?.count ?? null, result ? LIMITS.countExactMax + 1 : 0);
}

/**
 * Reads `limit` rows of a list from `offset` on, counted from its first row as of now. Skipping the keys before them takes time in proportion
 * to their number; only the rows that are asked for are read.
 * @param rowsOf reads the rows of these keys, in their order
 * @throws PlatformError REQUEST_TIMEOUT when the keys are not found within ten seconds
 */
export async function readSlice<Row>(
  db: Db,
  list: KeyList,
  { limit, offset }: { limit: number; offset: number },
  rowsOf: (tx: Tx, keys: string[]) => Promise<Row[]>,
): Promise<Page<Row>> {
  let found: { rows: Row[]; isLast: boolean; end: number } | undefined;
  const count = await inTime(db, list.values[0], async (tx) => {
    const keys = await readKeys(tx, list, limit, offset);
    const rows = keys.length > 0 ? await rowsOf(tx, keys) : [];
    const isLast = keys.length < limit && (keys.length > 0 || offset === 0);
    found = { rows, isLast, end: offset + keys.length };
    if (isLast) return { exact: found.end };
    return { exact: isKnownToBeLong(list) ? null : await countExactly(tx, list), moreThan: LIMITS.countExactMax };
  });
  if (!found) throw tooLong();
  // A full page may have another one after it, so it counts one row more: a reader that goes on to the last page sees all.
  const atLeast = Math.max(found.rows.length > 0 ? found.end + 1 : 0, (count?.moreThan ?? 0) + 1);
  return { rows: found.rows, ...(await counted(db, list, count?.exact ?? null, atLeast)) };
}

/** Reads a page of a list, as `readSlice` does. */
export function readPage<Row>(
  db: Db,
  list: KeyList,
  { page, page_size }: PageRequest,
  rowsOf: (tx: Tx, keys: string[]) => Promise<Row[]>,
): Promise<Page<Row>> {
  return readSlice(db, list, { limit: page_size, offset: (page - 1) * page_size }, rowsOf);
}

/** The first keys of a list, by its newest months alone where these have enough. */
export async function firstKeys(tx: Tx, list: KeyList, limit: number): Promise<string[]> {
  const keys = list.newest ? await keysAmong(tx, list, list.newest, limit, 0) : [];
  return keys.length === limit ? keys : keysAmong(tx, list, list.values, limit, 0);
}
