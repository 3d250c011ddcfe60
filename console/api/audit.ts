import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { type AuditSearch, auditBody } from '../audit/search.js';
import { call } from './call.js';

const PAGE_SIZE = 50;

/** The audit, page by page. All pages are of the time at which the first one was read. */
export function auditQuery({ entry: _shown, ...search }: AuditSearch) {
  return infiniteQueryOptions({
    queryKey: ['audit', search],
    queryFn: async ({ pageParam }) => {
      const at = pageParam?.at ?? Date.now();
      const cursor = pageParam?.cursor;
      const body = { ...auditBody(search, at), page_size: PAGE_SIZE, ...(cursor && { cursor }) };
      return { ...(await call('/audit/get', body)), at };
    },
    initialPageParam: null as { at: number; cursor: string } | null,
    // With the oldest first there is a cursor after the newest entry too.
    getNextPageParam: ({ next_cursor, entries, at }) =>
      next_cursor && entries.length === PAGE_SIZE ? { at, cursor: next_cursor } : null,
  });
}

/** One entry; null where it is not there. An entry never changes. */
export const entryQuery = (auditId: string) =>
  queryOptions({
    queryKey: ['audit', 'one', auditId],
    queryFn: async () => (await call('/audit/get', { audit_id: auditId })).entries[0] ?? null,
    staleTime: Number.POSITIVE_INFINITY,
  });
