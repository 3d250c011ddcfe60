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
  INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, payload)
  SELECT $1, given.event_id, $2, split_part($2, '.', 1), 'platform', 'info', given.payload
    FROM unnest($3::text[], $4::jsonb[]) AS given (event_id, payload)`;

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

/** As `recordEvent`, for events of one type that belong to no session, in one round trip. */
export async function recordEvents<Type extends EventType>(
  tx: Tx,
  tenantId: string,
  type: Type,
  payloads: EventPayloads[Type][],
): Promise<void> {
  const eventIds = payloads.map(() => newId('evt'));
  await tx.query(INSERT_EVENTS, [tenantId, type, eventIds, payloads.map((payload) => JSON.stringify(payload))]);
}
