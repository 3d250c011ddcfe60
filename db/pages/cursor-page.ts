import { z } from 'zod';
import type { Db, Tx } from '../pool.js';
import type { createCursors } from './cursors.js';
import { type Counted, firstKeys, inKeyOrder, type KeyList, type Page, type PageRequest, readPage } from './page.js';

/** The last key of the page before, and how many rows there were on the first page. */
export const KeyPosition = z.tuple([z.string().max(200), z.int().min(0), z.boolean()]);
export type KeyPosition = z.infer<typeof KeyPosition>;

/** A page of a list, and from where the next one goes on. */
export interface CursorPage<Row> extends Page<Row> {
  next_cursor?: string;
}

/** The position behind a row of a list that has so many rows. */
export const positionAfter = (key: string, { count, count_estimated }: Counted): KeyPosition => [
  key,
  count,
  count_estimated === true,
];

/**
 * Reads a page of a list that is in the order of its keys, the highest first: by its number, or behind a cursor, which skips no rows.
 * @param listBefore the list, without the keys from this one on; null for all of it
 * @throws PlatformError REQUEST_TIMEOUT as `readPage`; BAD_REQUEST for the cursor of another list
 */
export async function readCursorPage<Row>(
  db: Db,
  listBefore: (key: string | null) => KeyList,
  query: PageRequest & { cursor?: string | undefined },
  {
    cursors,
    rowsOf,
    keyOf,
  }: {
    cursors: ReturnType<typeof createCursors<KeyPosition>>;
    rowsOf: (tx: Tx, keys: string[]) => Promise<Row[]>;
    keyOf: (row: Row) => string;
  },
): Promise<CursorPage<Row>> {
  const { page, page_size } = query;
  const start = cursors.read(query.cursor);
  const next = (row: Row, counted: Counted) => cursors.make(positionAfter(keyOf(row), counted));
  if (start === null) {
    const found = await readPage(db, listBefore(null), query, rowsOf);
    const last = found.rows.at(-1);
    const isMore = last !== undefined && (found.count_estimated || page * page_size < found.count);
    return isMore ? { ...found, next_cursor: next(last, found) } : found;
  }
  const [key, count, isEstimate] = start;
  const counted = { count, ...(isEstimate && { count_estimated: true as const }) };
  const list = listBefore(key);
  return inKeyOrder(db, list.values[0], async (tx) => {
    const keys = await firstKeys(tx, list, page_size + 1);
    const rows = await rowsOf(tx, keys.slice(0, page_size));
    const last = rows.at(-1);
    const isMore = keys.length > page_size && last !== undefined;
    return { rows, ...counted, ...(isMore && { next_cursor: next(last, counted) }) };
  });
}
