import type { SessionSummary } from '../../contracts/api/sessions.js';

/** What a session is called: its user, or the end of its id. */
export const nameOf = ({ user_id, session_id }: Pick<SessionSummary, 'user_id' | 'session_id'>): string =>
  user_id ?? `…${session_id.slice(-6)}`;
