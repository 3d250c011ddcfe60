import type { z } from 'zod';
import type { MessageRecord, MessagesGetRequest } from '../../../contracts/api/messages.js';
import type { Reader } from '../../../contracts/permissions.js';
import { viewOf } from '../../../db/ownership.js';
import type { CursorPage } from '../../../db/pages/cursor-page.js';
import { createCursors } from '../../../db/pages/cursors.js';
import type { Db, Tx } from '../../../db/pool.js';
import type { Secrets } from '../../../runtime/secrets.js';
import { recordOf } from '../task.js';
import { type PageMessage, readPageMessages } from './page-rows.js';

/** What lists of messages need. */
export interface ListDeps {
  db: Db;
  secrets: Pick<Secrets, 'macs'>;
  /** Messages of a tenant that agents may have at once. */
  inFlightMax: number;
}

/** A page of messages, and from where the next one goes on. */
export type MessagePage = CursorPage<MessageRecord>;

/** A message of a list: with its content, or marked as `truncated`. */
function listed({ row, request, whole }: PageMessage): MessageRecord {
  const record = recordOf(row, request);
  return whole ? record : { ...record, task_data: { ...record.task_data, history: [] }, truncated: true };
}

/** The cursors of one list of messages. */
export function listCursors<Position>(
  { secrets }: Pick<ListDeps, 'secrets'>,
  reader: Reader,
  { cursor: _cursor, page: _page, page_size: _size, ...filters }: MessagesGetRequest,
  schema: z.ZodType<Position>,
) {
  return createCursors(secrets, {
    purpose: 'message-cursor',
    list: [reader.tenant_id, viewOf(reader), filters],
    schema,
  });
}

/** The messages of these ids, in their order, as a list shows them. */
export async function listedMessages(tx: Tx, tenantId: string, messageIds: string[]): Promise<MessageRecord[]> {
  return (await readPageMessages(tx, tenantId, messageIds)).map(listed);
}
