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

const INSERT_EVENTS = `
  INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, payload)
  SELECT e.tenant_id, e.event_id, $1, split_part($1, '.', 1), 'platform', e.severity, e.session_id, e.payload
    FROM jsonb_to_recordset($2) AS e (tenant_id text, event_id text, severity text, session_id text, payload jsonb)`;

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

/** As `recordEvent`, for events of one type, in one round trip. @returns their ids, in their order */
export async function recordEvents<Type extends EventType>(
  tx: Tx,
  type: Type,
  events: (EventContext & { payload: EventPayloads[Type] })[],
): Promise<string[]> {
  const rows = events.map((event) => ({ session_id: '', severity: 'info', ...event, event_id: newId('evt') }));
  if (rows.length > 0) await tx.query(INSERT_EVENTS, [type, JSON.stringify(rows)]);
  return rows.map(({ event_id }) => event_id);
}
