import type { Tx } from '../../db/pool.js';
import { targetWaitedText } from '../accept/targets.js';
import type { MessageCore } from '../core.js';
import type { RunningRow, SessionBinding } from '../read/rows.js';
import { failMessage } from './failed-step.js';
import type { GatedRow } from './policy-step.js';
import { type Step, waits } from './step.js';

/** If the wait is over but an agent has room, the platform may have been slow: the message goes on, for up to this multiple of its wait. */
const LATE_FACTOR = 10;
/** It goes on for at most so many milliseconds after the end of its wait. */
const LATE_MAX_MS = 1_800_000;
/** The time that such a message gets, in milliseconds. */
const LATE_MS = 1_000;

/** How long a message may wait for an agent's room. */
interface RoomWait {
  queue: string;
  since: Date;
  left_ms: number;
  waited_ms: number;
  /** The wait is over, and an agent has room. */
  agent_has_room: boolean;
}

/** Puts a message that rests into its queue, and reads how long it may wait there. @param offlineMs while no agent of its target is online */
async function joinQueue(
  tx: Tx,
  { tenant_id, message_id, session_id }: RunningRow,
  now: Date,
  offlineMs: number,
): Promise<RoomWait> {
  const [wait] = await tx.query<RoomWait>(
    `SELECT q.queue, w.since, w.left_ms, (extract(epoch FROM $3::timestamptz - w.since) * 1000)::bigint AS waited_ms,
            w.left_ms <= 0 AND EXISTS (SELECT 1 FROM agents_to_fill($1, q.queue) f JOIN agents a ON a.tenant_id = $1 AND a.instance_id = f.instance_id
              JOIN sessions s ON s.tenant_id = $1 AND s.session_id = $5
              WHERE coalesce(room_left(a) > 0, true) OR session_holds_slot(s.tenant_id, s.session_id, reserves_on(s), a.instance_id)) AS agent_has_room
       FROM queue_message($1, $2) AS q (queue) CROSS JOIN LATERAL route_wait($1, $2, $3, $4) w`,
    [tenant_id, message_id, now, offlineMs, session_id],
    'queue_message',
  );
  if (!wait) throw new Error('queue_message gave no row');
  return wait;
}

/** A step, and the queue in which the message then waits for an agent. */
export interface QueuedStep {
  step: Step;
  queue: string | null;
}

/** A message of which session and row are locked. */
export interface LockedMessage {
  tx: Tx;
  row: GatedRow;
  session: SessionBinding;
  now: Date;
  limits: MessageCore['limits'];
}

/** The step of a message that waits only for an agent with room. */
export async function roomStep(context: LockedMessage): Promise<QueuedStep> {
  const { tx, row, session, now, limits } = context;
  const { queue, since, left_ms, waited_ms, agent_has_room } = await joinQueue(tx, row, now, limits.queueWaitMs);
  const lateMs = Math.min(LATE_MAX_MS, (waited_ms + left_ms) * (LATE_FACTOR - 1));
  const isLate = left_ms <= 0 && !(agent_has_room && -left_ms < lateMs);
  if (isLate) {
    const message = await targetWaitedText(tx, row, session, waited_ms);
    return { step: await failMessage(tx, row, { code: 'TARGET_UNAVAILABLE', message }), queue: null };
  }
  const leftMs = left_ms <= 0 ? LATE_MS : left_ms;
  await tx.query(
    `UPDATE running_messages SET wait_ends_at = greatest(wait_ends_at, $3::timestamptz + $4 * interval '1 ms')
      WHERE tenant_id = $1 AND message_id = $2`,
    [row.tenant_id, row.message_id, now, leftMs],
  );
  const type = row.want_agent_type ?? row.agent_type;
  const ofType = type ? ` of type ${type}` : '';
  return { step: waits(row, 'room', `Waits for a free agent${ofType} since ${since.toISOString()}.`, leftMs), queue };
}
