import { firstKeys, inKeyOrder, type KeyList } from '../../../db/pages/page.js';
import type { Db } from '../../../db/pool.js';
import { hasText } from './list-filters.js';

/** Messages that one call searches. There is no index of words, because every message would have to write it. */
const LOOKED_THROUGH_MAX = 2_000;
const LOOKED_AT_ONCE = 500;

const WITH_TEXT = `SELECT m.message_id FROM messages m WHERE m.tenant_id = $1 AND m.message_id = ANY ($2) AND ${hasText('m', '$3')} ORDER BY m.message_id DESC`;

/** The ids that were found. `next`: the last message that was searched, after which the next page goes on; null when nothing is left. */
export interface FoundIds {
  ids: string[];
  next: string | null;
}

/**
 * Looks through the messages of a list for those with a text, the newest first, until a page is full or enough were looked at.
 * @param listBefore the messages of the list that are older than one
 * @param before the last one that was looked at; null: begins with the newest
 */
export function searchText(
  db: Db,
  listBefore: (id: string | null) => KeyList,
  { text, limit, before }: { text: string; limit: number; before: string | null },
): Promise<FoundIds> {
  return inKeyOrder(db, listBefore(before).values[0], async (tx) => {
    const ids: string[] = [];
    let last = before;
    for (let looked = 0; looked < LOOKED_THROUGH_MAX; looked += LOOKED_AT_ONCE) {
      const list = listBefore(last);
      const keys = await firstKeys(tx, list, LOOKED_AT_ONCE);
      const found = await tx.query<{ message_id: string }>(WITH_TEXT, [list.values[0], keys, text]);
      for (const { message_id } of found) {
        ids.push(message_id);
        if (ids.length === limit) return { ids, next: message_id };
      }
      if (keys.length < LOOKED_AT_ONCE) return { ids, next: null };
      last = keys.at(-1) ?? last;
    }
    return { ids, next: last };
  });
}
