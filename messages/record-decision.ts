import type { Tx } from '../db/pool.js';
import type { DecisionEvent } from '../policy/verdict.js';
import type { MessageRef } from './core.js';

const RECORD = `
  SELECT record_decision_events(m.tenant_id, m.session_id, m.message_id, m.trace_id, $3) FROM messages m WHERE m.tenant_id = $1 AND m.message_id = $2`;

/** Writes the events of what policies and guards have decided about a message that is on the record. */
export async function recordMessageDecision(
  tx: Tx,
  { tenant_id, message_id }: MessageRef,
  events: DecisionEvent[],
): Promise<void> {
  if (events.length > 0) await tx.query(RECORD, [tenant_id, message_id, JSON.stringify(events)]);
}
