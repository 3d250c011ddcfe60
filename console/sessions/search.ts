import type { SessionSummary } from '../../contracts/api/sessions.js';
import { addressReader } from '../list/address.js';
import { sinceOf, WITHIN, type Within } from '../messages/filters.js';

export const STATUSES = [
  ...(['active', 'paused', 'completed', 'expired'] as const),
] satisfies SessionSummary['status'][];

/** What the address of the sessions says: filters, and the session that is shown beside the list. */
export interface SessionsSearch {
  status?: SessionSummary['status'];
  time?: Within;
  agent?: string;
  user?: string;
  session?: string;
}

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parseSessionsSearch(search: Record<string, unknown>): SessionsSearch {
  const { text, one } = addressReader(search);
  return { ...one('status', STATUSES), ...one('time', WITHIN), ...text('agent', 'user', 'session') };
}

/** The list that an address asks for. */
export function sessionsQueryOf({ status, time, agent, user }: SessionsSearch, nowMs: number) {
  return {
    ...(status && { status }),
    ...(time && { since: sinceOf(time, nowMs) }),
    ...(agent !== undefined && { agent_type: agent }),
    ...(user !== undefined && { user_id: user }),
  };
}
