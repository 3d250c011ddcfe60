import type { EventPayloads, EventType } from '../contracts/events.js';
import { newId } from '../runtime/ids.js';
import type { Tx } from './pool.js';

/** The columns of an event besides type and payload. */
export interface EventContext {
  tenant_id: string;
  session_id?: string;
  trace_id?: string | null;
  severity?: 'info' | 'warning' | 'critical';
  /** The part of the platform that writes it; `platform` by default. */
  source?: string;
}

const INSERT_EVENT = `
  INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, trace_id, payload)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`;

/** Writes an event, in the transaction of the change that it reports. @returns the event's id */
export async function recordEvent<Type extends EventType>(
  tx: Tx,
  context: EventContext,
  type: Type,
  payload: EventPayloads[Type],
): Promise<string> {
  const eventId = newId('evt');
  await tx.query(
    INSERT_EVENT,
    [
      context.tenant_id,
      eventId,
      type,
      type.slice(0, type.indexOf('.')),
      context.source ?? 'platform',
      context.severity ?? 'info',
      context.session_id ?? '',
      context.trace_id ?? null,
      JSON.stringify(payload),
    ],
    'insert_event',
  );
  return eventId;
}
