import type { Tx } from '../../../db/pool.js';
import { idBound } from '../../../runtime/ids.js';

/** Dispatches that one statement looks at: the first one, for a first page, and those that follow. */
const [FIRST_CHUNK, CHUNK] = [200, 1_000];
/** How far the clocks of processes, which make ids, may be ahead of the database's for the order to be exact, in milliseconds. */
const CLOCKS_DIFFER_MS = 60_000;
/** To count up to `most` messages, at most so many times as many dispatches are read. With more, the count is an estimate. */
const DISPATCHES_OF_MESSAGE = 2;

/** The messages of one instance that match. */
export interface InstanceMessages {
  /** Conditions on the row `m` of `messages`. */
  where: string;
  /** The values of `where`; the first is the tenant, the fifth the instance. */
  values: unknown[];
}

/** Goes through the index of the instance's dispatches, so that no message of another instance is read. */
const MATCHING = (where: string) => `dispatches d CROSS JOIN LATERAL (
  SELECT m.message_id FROM messages m WHERE m.tenant_id = $1 AND m.message_id = d.message_id AND ${where} OFFSET 0) found
 WHERE d.tenant_id = $1 AND d.instance_id = $5`;

/**
 * The ids of the messages that were dispatched to an instance, the newest message first, from `offset` on. It walks the instance's dispatches, the newest
 * first. A message is older than its dispatches, so every message newer than the dispatch that was looked at last has been seen. Its cost depends on the place
 * in the list, not on the number of messages.
 */
export async function instanceMessageIds(
  tx: Tx,
  { where, values }: InstanceMessages,
  limit: number,
  offset: number,
): Promise<string[]> {
  const page: string[] = [];
  const seen = new Set<string>();
  let skipped = 0;
  /** Moves the ids from `newerThan` on to the page: no dispatch that is still to be looked at has a newer message. */
  const take = (newerThan: string): void => {
    const sure = [...seen].filter((id) => id >= newerThan).sort((a, b) => (a < b ? 1 : -1));
    for (const id of sure) {
      seen.delete(id);
      if (skipped < offset) skipped += 1;
      else page.push(id);
    }
  };
  const next = (chunk: number) => `SELECT found.message_id, d.created_at FROM ${MATCHING(where)}
      AND d.created_at < coalesce($${values.length + 1}::timestamptz, 'infinity')
    ORDER BY d.created_at DESC FETCH FIRST ${chunk} ROWS WITH TIES`;
  let before: string | null = null;
  for (let chunk = offset === 0 ? FIRST_CHUNK : CHUNK; page.length < limit; chunk = CHUNK) {
    // `at` is text, because a Date has no microseconds.
    const rows: { message_id: string; at: string; at_ms: number }[] = await tx.query(
      `SELECT message_id, created_at::text AS at, extract(epoch FROM created_at)::double precision * 1000 AS at_ms FROM (${next(chunk)}) AS chunk
        ORDER BY created_at DESC`,
      [...values, before],
    );
    for (const { message_id } of rows) seen.add(message_id);
    const last = rows.at(-1);
    if (!last || rows.length < chunk) {
      take('');
      break;
    }
    take(idBound('msg', last.at_ms + CLOCKS_DIFFER_MS));
    before = last.at;
  }
  return page.slice(0, limit);
}

/** How many messages of an instance match; null when there are more than `most`, or too many dispatches to look at. */
export async function countInstanceMessages(
  tx: Tx,
  { where, values }: InstanceMessages,
  most: number,
): Promise<number | null> {
  const dispatches = DISPATCHES_OF_MESSAGE * most;
  const [counted] = await tx.query<{ messages: number; dispatches: number }>(
    `SELECT count(DISTINCT message_id) AS messages, count(*) AS dispatches FROM (
       SELECT found.message_id FROM ${MATCHING(where)} ORDER BY d.created_at DESC LIMIT ${dispatches + 1}) AS looked_at`,
    values,
  );
  const { messages, dispatches: lookedAt } = counted ?? { messages: 0, dispatches: 0 };
  return messages > most || lookedAt > dispatches ? null : messages;
}
