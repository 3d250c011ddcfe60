import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { type MessagesSearch, queryOf } from '../messages/filters.js';
import { type BodyOf, call } from './call.js';

const PAGE_SIZE = 50;

/** A list of messages, page by page. All pages are of the time at which the first one was read. */
export function messagesQuery({ message: _shown, ...search }: MessagesSearch) {
  return infiniteQueryOptions({
    queryKey: ['messages', search],
    queryFn: async ({ pageParam }) => {
      const at = pageParam?.at ?? Date.now();
      const cursor = pageParam?.cursor;
      const body = { ...queryOf(search, at), page_size: PAGE_SIZE, ...(cursor && { cursor }) };
      return { ...(await call('/messages/get', body)), at };
    },
    initialPageParam: null as { at: number; cursor: string } | null,
    getNextPageParam: ({ next_cursor, at }) => (next_cursor ? { at, cursor: next_cursor } : null),
  });
}

/** Messages counted by what they have in common. */
export const groupsQuery = (body: () => BodyOf<'/messages/get_groups'>, key: readonly unknown[]) =>
  queryOptions({
    queryKey: ['groups', ...key],
    queryFn: async () => (await call('/messages/get_groups', body())).groups,
  });

/** One message, whole. */
export const messageQuery = (messageId: string) =>
  queryOptions({
    queryKey: ['message', messageId],
    queryFn: async () => (await call('/messages/get_by_id', { message_id: messageId })).message,
  });
