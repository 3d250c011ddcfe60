import type { EventPayloads, EventSeverity } from '../../contracts/events.js';
import { newId } from '../../runtime/ids.js';
import type { GuardedAction, GuardFinding } from './types.js';

/** An event of what a guard decided, as the SQL function `record_decision_events` takes it. */
export interface GuardEvent<Type extends keyof EventPayloads = 'guard.allowed' | 'guard.denied'> {
  event_id: string;
  event_type: Type;
  severity: EventSeverity;
  payload: EventPayloads[Type];
}

/** `guard.denied` for the finding that denies. */
export function deniedEvent({ guard, reason }: GuardFinding, action: GuardedAction): GuardEvent<'guard.denied'> {
  const payload = { guard, ...action, reason };
  return { event_id: newId('evt'), event_type: 'guard.denied', severity: 'warning', payload };
}

/** `guard.allowed` for findings that are let through: one for each guard. */
export function allowedEvents(findings: readonly GuardFinding[], action: GuardedAction): GuardEvent<'guard.allowed'>[] {
  const guards = new Set(findings.filter(({ decision }) => decision === 'allow').map(({ guard }) => guard));
  return [...guards].map((guard) => ({
    event_id: newId('evt'),
    event_type: 'guard.allowed',
    severity: 'info',
    payload: { guard, ...action },
  }));
}
