import type { EventFilters } from '../contracts/api/telemetry.js';
import type { PositionedEvent } from './event-reader.js';

/** Whether an event of the tenant passes all filters that are given, as `/telemetry/get_events` decides it in SQL. */
export function passes(filters: EventFilters, { record, message_id }: PositionedEvent): boolean {
  const has = (wanted: string | undefined, value: unknown): boolean => wanted === undefined || wanted === value;
  return (
    has(filters.session_id, record.session_id) &&
    has(filters.message_id, message_id) &&
    has(filters.instance_id, record.event.instance_id) &&
    has(filters.category, record.category) &&
    (filters.type === undefined || filters.type.split(',').includes(record.event_type)) &&
    has(filters.source, record.source)
  );
}
