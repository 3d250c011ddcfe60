import { z } from 'zod';
import type { MessageRecord, MessagesGetRequest } from '../../../contracts/api/messages.js';
import type { Reader } from '../../../contracts/permissions.js';
import { inKeyOrder } from '../../../db/pages/page.js';
import { idBound, idRange } from '../../../runtime/ids.js';
import { type Wait, waiting, waitsForOf } from '../waits.js';
import { filterValues, hasText, ofRunning } from './list-filters.js';
import { type ListDeps, listCursors, listedMessages, type MessagePage } from './list-page.js';

/** How many messages at rest are looked at, the oldest first. The newest beyond would not be on the first pages anyway. */
const LOOKED_AT_MAX = 10_000;

/** Since when the last message of the page has waited, its id, and how many there were on the first page. */
const Position = z.tuple([z.string().max(40), z.string().max(200), z.int().min(0)]);

/** `$15`: what they wait for; `$16`: for how many milliseconds at least; `$17`: messages that agents may have at once; `$18`: a text. */
const WAITING = `(${waiting(
  `($3::text IS NULL OR r.state = $3) AND ($15::text IS NULL OR (r.state = 'input-required') = ($15 = 'person'))
   ORDER BY r.message_id LIMIT ${LOOKED_AT_MAX}`,
  '$17::integer',
)}) m WHERE ${ofRunning(`($18::text IS NULL OR ${hasText('o', '$18')})`, '$18::text IS NOT NULL')}
  AND m.kind IS NOT NULL AND ($15::text IS NULL OR m.kind = $15) AND ($16::bigint IS NULL OR m.since <= now() - $16 * interval '1 ms')`;

const COUNT = `SELECT count(*)::integer AS count FROM ${WAITING}`;
const PAGE = `
  SELECT m.message_id, m.kind, m.since, m.since::text AS at, m.queue, m.online FROM ${WAITING}
     AND ($19::timestamptz IS NULL OR (m.since, m.message_id) > ($19, $20))
   ORDER BY m.since, m.message_id LIMIT $21`;

interface Found extends Wait, Record<string, unknown> {
  message_id: string;
  /** `since` to the microsecond. */
  at: string;
}

/** A page of the messages that wait and that a reader may see, those that have waited longest first. @throws PlatformError as `listMessages` */
export async function listWaiting(deps: ListDeps, reader: Reader, query: MessagesGetRequest): Promise<MessagePage> {
  const cursors = listCursors(deps, reader, query, Position);
  const [at = null, id = null, known] = cursors.read(query.cursor) ?? [];
  const range = idRange((atMs) => idBound('msg', atMs), { from: query.since, to: query.until });
  const { waits_for = null, waited_ms = null, text = null, page_size } = query;
  const values = [...filterValues(reader, query, range), waits_for, waited_ms, deps.inFlightMax, text];
  return inKeyOrder(deps.db, reader.tenant_id, async (tx) => {
    const found = await tx.query<Found>(PAGE, [...values, at, id, page_size + 1]);
    const shown = found.slice(0, page_size);
    const ids = shown.map(({ message_id }) => message_id);
    const waits = new Map(shown.map((row) => [row.message_id, waitsForOf(row)]));
    const rows = (await listedMessages(tx, reader.tenant_id, ids)).map((message): MessageRecord => {
      const waits_for = waits.get(message.message_id);
      return { ...message, ...(waits_for && { waits_for }) };
    });
    const [counted] = known === undefined ? await tx.query<{ count: number }>(COUNT, values) : [];
    const count = known ?? counted?.count ?? 0;
    const last = shown.at(-1);
    const isMore = found.length > page_size && last !== undefined;
    return { rows, count, ...(isMore && { next_cursor: cursors.make([last.at, last.message_id, count]) }) };
  });
}
