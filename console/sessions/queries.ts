import { queryOptions } from '@tanstack/react-query';
import { call } from '../api/call.js';
import { cursorPages } from '../api/pages.js';
import { type SessionsSearch, sessionsQueryOf } from './search.js';

const PAGE_SIZE = 50;
/** Messages of a session that are shown, the newest. */
const SHOWN_MAX = 100;

/** A list of sessions, page by page. */
export const sessionsQuery = ({ session: _shown, ...search }: SessionsSearch) =>
  cursorPages(['sessions', search], (atMs, cursor) =>
    call('/sessions/get', { ...sessionsQueryOf(search, atMs), page_size: PAGE_SIZE, ...cursor }),
  );

/** One session with its agents. */
export const sessionDetailsQuery = (sessionId: string) =>
  queryOptions({
    queryKey: ['session-details', sessionId],
    queryFn: async () => (await call('/sessions/get_by_id', { session_id: sessionId })).session,
  });

/** The newest messages of a session in their order, and how many older ones there are. */
export const conversationQuery = (sessionId: string) =>
  queryOptions({
    queryKey: ['talk', sessionId],
    queryFn: async () => {
      const { messages, count } = await call('/messages/get', { session_id: sessionId, page_size: SHOWN_MAX });
      return { records: messages.toReversed(), older: count - messages.length };
    },
  });
