import { messagesOfSession } from '../db/message-filters.js';
import type { Db } from '../db/pool.js';
import { idBound } from '../runtime/ids.js';
import type { Selection } from './erasures.js';

/** Messages that one transaction erases. */
export const MESSAGES_AT_ONCE = 100;

/** A message that is selected. */
export interface SelectedMessage {
  message_id: string;
  session_id: string;
  created_at: Date;
  updated_at: Date;
}

/** Nothing works on the message any more, and no plan waits for it. */
export const IS_OVER = `(
  NOT EXISTS (SELECT 1 FROM running_messages r WHERE r.tenant_id = m.tenant_id AND r.message_id = m.message_id)
  AND NOT EXISTS (SELECT 1 FROM plan_messages s JOIN plans p ON p.tenant_id = s.tenant_id AND p.plan_id = s.plan_id
    WHERE s.tenant_id = m.tenant_id AND s.message_id = m.message_id AND p.state IN ('proposed', 'running')))`;

export const SELECTED_COLUMNS = 'm.message_id, m.session_id, m.created_at, m.updated_at';

/** The messages of a selection that are over, or those that are not. */
function selectMessages(selection: Selection, over: boolean): [from: string, value: string] {
  const condition = `${IS_OVER} = ${over}`;
  const select = (where: string) =>
    `SELECT ${SELECTED_COLUMNS} FROM messages m WHERE m.tenant_id = $1 AND ${where} AND ${condition} ORDER BY m.message_id LIMIT ${MESSAGES_AT_ONCE}`;
  if ('message_id' in selection) return [select('m.message_id = $2'), selection.message_id];
  if ('session_id' in selection) return [select(messagesOfSession('m', '$1', '$2')), selection.session_id];
  if ('before' in selection) return [select('m.message_id < $2'), idBound('msg', Date.parse(selection.before))];
  return [select('m.user_id = $2'), selection.user_id];
}

/** The next messages of a selection. @param over those that are over, or those that are not */
export function readSelected(
  db: Db,
  tenantId: string,
  selection: Selection,
  over: boolean,
): Promise<SelectedMessage[]> {
  const [select, value] = selectMessages(selection, over);
  return db.system((tx) => tx.query<SelectedMessage>(select, [tenantId, value]));
}
