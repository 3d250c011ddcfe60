import type { PlanState } from '../../contracts/api/plans.js';
import { addressReader } from '../list/address.js';
import { sinceOf, WITHIN, type Within } from '../messages/filters.js';

export const STATES = [
  ...(['proposed', 'running', 'completed', 'failed', 'canceled', 'rejected'] as const),
] satisfies PlanState[];

/** What the address of the plans says: filters, and the plan and the step that are shown beside the list. */
export interface PlansSearch {
  state?: PlanState;
  time?: Within;
  session?: string;
  plan?: string;
  step?: string;
}

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parsePlansSearch(search: Record<string, unknown>): PlansSearch {
  const { text, one } = addressReader(search);
  return { ...one('state', STATES), ...one('time', WITHIN), ...text('session', 'plan', 'step') };
}

/** The list that an address asks for. */
export function plansQueryOf({ state, time, session }: PlansSearch, nowMs: number) {
  return {
    ...(state && { state }),
    ...(time && { since: sinceOf(time, nowMs) }),
    ...(session !== undefined && { session_id: session }),
  };
}
