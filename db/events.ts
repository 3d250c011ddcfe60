import type { EventPayloads, EventSeverity, EventType } from '../contracts/events.js';
import { newEventId } from '../runtime/ids.js';
import type { Tx } from './pool.js';

/** The columns of an event besides type and payload. */
interface EventContext {
  tenant_id: string;
  session_id?: string;
  severity?: EventSeverity;
}

const INSERT_EVENT = 'SELECT record_event($1, $2, $3, $4, $5, NULL, $6)';

const INSERT_EVENTS = `
  SELECT record_event(e.tenant_id, e.event_id, $1, e.severity, e.session_id, NULL, e.payload)
    FROM jsonb_to_recordset($2) AS e (tenant_id text, event_id text, severity text, session_id text, payload jsonb)`;

/** Writes an event, in the transaction of the change that it reports. @returns its id */
export async function recordEvent<Type extends EventType>(
  tx: Tx,
  { tenant_id, session_id = '', severity = 'info' }: EventContext,
  type: Type,
  payload: EventPayloads[Type],
): Promise<string> {
  const event_id = newEventId();
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
  const rows = events.map((event) => ({ session_id: '', severity: 'info', ...event, event_id: newEventId() }));
  if (rows.length > 0) await tx.query(INSERT_EVENTS, [type, JSON.stringify(rows)]);
  return rows.map(({ event_id }) => event_id);
}

/** The groups of events of a session, found by their index. @param alias of `event_groups` @param tenant SQL of type text, as `session` */
export function groupsOfSession(alias: string, tenant: string, session: string): string {
  return `${alias}.session_uuid = session_uuid(uuid_of(${tenant}), ${session}) AND ${alias}.tenant_id = uuid_of(${tenant})`;
}
