import { slotOf } from '../../agents/agent-row.js';
import type { Tx } from '../../db/pool.js';
import { newEventId } from '../../runtime/ids.js';
import type { MessageCore } from '../core.js';
import { boundedError, logEnd, type StoredError } from '../dispatch/message-end.js';
import type { RunningRow } from '../read/rows.js';
import { type Step, stepError } from './step.js';

/** Fails a locked message, and gives its last step. @param requestState the new state of its open input request */
export async function failMessage(
  tx: Tx,
  row: RunningRow,
  error: StoredError,
  requestState: 'expired' | 'withdrawn' = 'withdrawn',
): Promise<Step> {
  const { code, message } = boundedError(error);
  const values = [row.tenant_id, row.message_id, code, message, requestState, newEventId()];
  await tx.query('SELECT fail_message($1, $2, $3, $4, $5, $6)', values);
  return { kind: 'done', state: 'failed', agent_type: row.agent_type, ...stepError(code) };
}

/** After the commit: notifies streams, the log and the agent of a failed message. @param row as it was before */
export function announceFailed(core: MessageCore, row: RunningRow, code: string | undefined): void {
  core.bus.publish(row.tenant_id, row.message_id, { kind: 'changed' });
  logEnd(core.log, { ...row, state: 'failed', dispatch_id: row.current_dispatch_id, code });
  const freed = slotOf(row);
  if (freed) core.nodes.fill(freed);
}
