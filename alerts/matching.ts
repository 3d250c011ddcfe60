import { type Condition, matchesType } from '../contracts/api/alerts.js';
import type { EventRecord } from '../contracts/api/telemetry.js';
import { EVENT_TYPES } from '../contracts/events.js';

/** Whether a rule may receive callback tokens: its pattern names one type of event. */
export function mayHaveToken({ event }: Pick<Condition, 'event'>): boolean {
  return !event.includes('*');
}

/** The types of event that a rule matches. Its own alerts are not counted by rules with a threshold, which could cause each other for ever. */
export function typesOf({ event, threshold }: { event: string; threshold: number }): Set<string> {
  const matching = EVENT_TYPES.filter((type) => matchesType(event, type));
  return new Set(threshold > 1 ? matching.filter((type) => type !== 'system.alert_triggered') : matching);
}

/** Whether an event has the values that the filters name. */
export function passesFilters(
  filters: Condition['filters'],
  record: Pick<EventRecord, 'event' | 'session_id'>,
): boolean {
  return Object.entries(filters ?? {}).every(([field, wanted]) => {
    const value = field === 'session_id' ? record.session_id : record.event[field];
    return Array.isArray(wanted) ? wanted.some((one) => one === value) : wanted === value;
  });
}
