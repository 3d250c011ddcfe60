import type { z } from 'zod';
import type { DeliveryStatus, GetDeliveriesRequest } from '../../contracts/api/deliveries.js';
import { sinceOf, TIMES } from '../messages/filters.js';

const STATUSES = ['failed', 'pending', 'delivered', 'dropped'] as const satisfies DeliveryStatus[];

/** What the address of the alerts says: the tab, the filters of the deliveries, and what is shown beside the list. */
export interface AlertsSearch {
  tab?: 'rules';
  /** Failed ones where nothing is said. */
  status?: (typeof STATUSES)[number] | 'all';
  /** The deliveries of a rule, or the rule that is shown. */
  rule?: string;
  event_type?: string;
  time?: keyof typeof TIMES;
  delivery?: string;
  /** Of the tab with the rules. */
  form?: 'new' | 'edit';
}

const TEXT_MAX = 200;

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parseAlertsSearch(search: Record<string, unknown>): AlertsSearch {
  const text = (name: string) => {
    const value = search[name];
    return typeof value === 'string' && value !== '' && value.length <= TEXT_MAX ? { [name]: value } : {};
  };
  const one = <Value extends string>(name: string, values: readonly Value[]) => {
    const value = values.find((known) => known === search[name]);
    return value === undefined ? {} : { [name]: value };
  };
  return {
    ...one('tab', ['rules']),
    ...one('status', ['all', ...STATUSES]),
    ...one('time', Object.keys(TIMES)),
    ...one('form', ['new', 'edit']),
    ...text('rule'),
    ...text('event_type'),
    ...text('delivery'),
  };
}

/** The list of deliveries that an address asks for. */
export function deliveriesBody(
  { status = 'failed', rule, event_type, time }: AlertsSearch,
  nowMs: number,
): z.input<typeof GetDeliveriesRequest> {
  return {
    ...(status !== 'all' && { status }),
    ...(rule && { rule_id: rule }),
    ...(event_type && { event_type }),
    ...(time && { since: sinceOf(time, nowMs) }),
  };
}

/** What came of the last attempt, in a word: `503`, `TIMEOUT`, `not tried yet`. */
export function answerText(attempt: { status_code: number | null; error?: string | undefined } | undefined): string {
  if (!attempt) return 'not tried yet';
  return String(attempt.status_code ?? attempt.error ?? 'no answer');
}
