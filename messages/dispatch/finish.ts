import { recordEvent } from '../../db/events.js';
import type { Tx } from '../../db/pool.js';
import type { DispatchRow, MessageRow } from '../read/rows.js';

const FINISH = `
  UPDATE messages SET state = $3, error_code = $4, error_message = $5, completed_at = now(), updated_at = now(),
    holds_slot = false, resolution = NULL, unrouted_since = NULL, wake_requested_at = NULL
  WHERE tenant_id = $1 AND message_id = $2`;

const MAX_ERROR_CHARS = 4_096;

/** An error as it is stored: its text at most 4,096 characters. */
export function bounded(error: { code: string; message: string }): { code: string; message: string } {
  return { code: error.code, message: error.message.slice(0, MAX_ERROR_CHARS).toWellFormed() };
}

/** Where a message's events belong. */
export function eventPlace(row: { tenant_id: string; session_id: string; trace_id: string }) {
  return { tenant_id: row.tenant_id, session_id: row.session_id, trace_id: row.trace_id };
}

/** Ends a message as `failed`, with its one `message.error`. The caller holds the row's lock and knows that it is not terminal. */
export async function finishFailed(tx: Tx, row: MessageRow, error: { code: string; message: string }): Promise<void> {
  await tx.query(FINISH, [row.tenant_id, row.message_id, 'failed', error.code, bounded(error).message]);
  await recordEvent(tx, { ...eventPlace(row), severity: 'warning' }, 'message.error', {
    message_id: row.message_id,
    session_id: row.session_id,
    error: error.code,
  });
}

/** Ends a message as `canceled`, with its one `message.canceled`; a workflow is then wanted to tell the agent. */
export async function finishCanceled(tx: Tx, row: MessageRow, reason: string): Promise<void> {
  await tx.query(FINISH, [row.tenant_id, row.message_id, 'canceled', null, null]);
  await tx.query('UPDATE messages SET wake_requested_at = now() WHERE tenant_id = $1 AND message_id = $2', [
    row.tenant_id,
    row.message_id,
  ]);
  await recordEvent(tx, eventPlace(row), 'message.canceled', {
    message_id: row.message_id,
    session_id: row.session_id,
    reason,
  });
}

/** Closes an open dispatch and writes `dispatch.success` or `dispatch.failed`; one that was never sent has no event. */
export async function closeDispatch(
  tx: Tx,
  row: { trace_id: string },
  dispatch: DispatchRow,
  state: 'completed' | 'input-required' | 'failed' | 'canceled',
  errorCode: string | null,
): Promise<void> {
  const [closed] = await tx.query<{ duration_ms: number }>(
    `UPDATE dispatches SET state = $3, error_code = $4, ended_at = now()
      WHERE tenant_id = $1 AND dispatch_id = $2
      RETURNING (extract(epoch FROM now() - coalesce(sent_at, now())) * 1000)::bigint AS duration_ms`,
    [dispatch.tenant_id, dispatch.dispatch_id, state, errorCode],
  );
  if (dispatch.sent_at === null) return;
  const place = eventPlace({ ...dispatch, trace_id: row.trace_id });
  const facts = {
    dispatch_id: dispatch.dispatch_id,
    instance_id: dispatch.instance_id,
    duration_ms: Math.max(0, closed?.duration_ms ?? 0),
  };
  if (errorCode === null) await recordEvent(tx, place, 'dispatch.success', facts);
  else await recordEvent(tx, { ...place, severity: 'warning' }, 'dispatch.failed', { ...facts, error: errorCode });
}

/** Takes back the question to a human that is open on a message, if one is. */
export async function withdrawRequest(tx: Tx, row: MessageRow): Promise<void> {
  await tx.query(
    `UPDATE input_requests SET state = 'withdrawn', ended_at = now()
      WHERE tenant_id = $1 AND message_id = $2 AND state = 'pending'`,
    [row.tenant_id, row.message_id],
  );
}

/** The open dispatch of a message, locked; null when there is none. */
export async function openDispatchOf(tx: Tx, row: MessageRow): Promise<DispatchRow | null> {
  if (row.current_dispatch_id === null) return null;
  const [dispatch] = await tx.query<DispatchRow>(
    `SELECT * FROM dispatches WHERE tenant_id = $1 AND dispatch_id = $2 AND state = 'open' FOR UPDATE`,
    [row.tenant_id, row.current_dispatch_id],
  );
  return dispatch ?? null;
}
