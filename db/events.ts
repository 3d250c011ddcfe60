import type { EventPayloads, EventSeverity, EventType } from '../contracts/events.js';
import { newId } from '../runtime/ids.js';
import type { Tx } from './pool.js';

/** The columns of an event besides type and payload. */
interface EventContext {
  tenant_id: string;
  session_id?: string;
  severity?: EventSeverity;
}

const INSERT_EVENT = `
  INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, payload)
  VALUES ($1, $2, $3, split_part($3, '.', 1), 'platform', $4, $5, $6)`;

/** Writes an event, in the transaction of the change that it reports. @returns its id */
export async function recordEvent<Type extends EventType>(
  tx: Tx,
  { tenant_id, session_id = '', severity = 'info' }: EventContext,
  type: Type,
  payload: EventPayloads[Type],
): Promise<string> {
  const event_id = newId('evt');
  const values = [tenant_id, event_id, type, severity, session_id, JSON.stringify(payload)];
  await tx.query(INSERT_EVENT, values, 'insert_event');
  return event_id;
}
