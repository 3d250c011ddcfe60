import { queryOptions } from '@tanstack/react-query';
import { type MessagesSearch, queryOf } from '../messages/filters.js';
import { type BodyOf, call } from './call.js';
import { cursorPages } from './pages.js';

const PAGE_SIZE = 50;

/** A list of messages, page by page. */
export const messagesQuery = ({ message: _shown, ...search }: MessagesSearch) =>
  cursorPages(['messages', search], (atMs, cursor) =>
    call('/messages/get', { ...queryOf(search, atMs), page_size: PAGE_SIZE, ...cursor }),
  );

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
