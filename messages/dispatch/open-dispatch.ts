import { isTerminal } from '../../contracts/messages.js';
import type { Tx } from '../../db/pool.js';
import { readable } from '../read/readable.js';
import type { DispatchRow, MessageRow } from '../read/rows.js';
import type { DispatchContext } from './dispatch-payload.js';
import type { DispatchRef } from './dispatch-ref.js';

/** A dispatch that is open, its message, and what belongs to both. */
export interface LockedDispatch {
  row: MessageRow;
  dispatch: DispatchRow;
  around: DispatchContext;
  /** The agent's newest connection. */
  newestEpoch: number | null;
}

const OF_DISPATCH = [
  'tenant_id',
  'dispatch_id',
  'message_id',
  'session_id',
  'instance_id',
  'agent_type',
  'deployment_mode',
  'mesh_id',
  'epoch',
  'attempt',
  'state',
  'skill_id',
  'created_at',
  'sent_at',
  'deadline_at',
  'ended_at',
  'error_code',
] as const satisfies (keyof DispatchRow)[];

/** Names with a prefix, because messages and dispatches have columns of the same names. */
const LOCK = `
  SELECT m.*, ${OF_DISPATCH.map((column) => `d.${column} AS d_${column}`).join(', ')},
         s.user_id AS s_user_id, a.public_url AS a_public_url, a.agent_card AS a_agent_card, a.connection_epoch AS a_epoch
    FROM messages m JOIN dispatches d ON d.tenant_id = m.tenant_id AND d.dispatch_id = m.current_dispatch_id
    JOIN sessions s ON s.tenant_id = m.tenant_id AND s.session_id = m.session_id
    LEFT JOIN agents a ON a.tenant_id = d.tenant_id AND a.instance_id = d.instance_id
   WHERE m.tenant_id = $1 AND m.message_id = $2 AND d.dispatch_id = $3
     FOR UPDATE OF m, d`;

interface LockRow extends MessageRow, Record<string, unknown> {
  s_user_id: string | null;
  a_public_url: string | null;
  a_agent_card: Record<string, unknown> | null;
  a_epoch: number | null;
}

/** Message and dispatch, locked in that order, when the dispatch is open and the message's current one; null otherwise. */
export async function lockOpen(tx: Tx, ref: DispatchRef): Promise<LockedDispatch | null> {
  const [found] = await tx.query<LockRow>(LOCK, [ref.tenant_id, ref.message_id, ref.dispatch_id], 'lock_dispatch');
  if (!found || isTerminal(found.state) || found.d_state !== 'open') return null;
  const dispatch = Object.fromEntries(
    OF_DISPATCH.map((column) => [column, found[`d_${column}`]]),
  ) as unknown as DispatchRow;
  const around = { user_id: found.s_user_id, public_url: found.a_public_url, agent_card: found.a_agent_card ?? {} };
  return { row: readable(found), dispatch, around, newestEpoch: found.a_epoch };
}

const MARK_SENT = `
  WITH sent AS (
    UPDATE dispatches SET sent_at = now(), deadline_at = now() + $4 * interval '1 ms', mesh_id = $5, epoch = $6
     WHERE tenant_id = $1 AND dispatch_id = $3 RETURNING sent_at, deadline_at),
  working AS (
    UPDATE messages SET state = 'working', started_at = coalesce(started_at, now()), updated_at = now()
     WHERE tenant_id = $1 AND message_id = $2)
  SELECT sent_at, deadline_at FROM sent`;

/** Writes into a locked dispatch that it goes out from this node now. */
export async function writeSent(
  tx: Tx,
  { row, dispatch }: LockedDispatch,
  owner: { mesh_id: string; epoch: number },
): Promise<DispatchRow> {
  const [sent] = await tx.query<{ sent_at: Date; deadline_at: Date }>(
    MARK_SENT,
    [row.tenant_id, row.message_id, dispatch.dispatch_id, row.deadline_ms, owner.mesh_id, owner.epoch],
    'mark_sent',
  );
  if (!sent) throw new Error('a locked dispatch was not there');
  return { ...dispatch, ...owner, ...sent };
}
