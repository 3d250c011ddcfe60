import { infiniteQueryOptions } from '@tanstack/react-query';

/**
 * A list that is read by cursor, page by page. All pages are of the time at which the first one was read.
 * @param read one page; `cursor` is empty for the first
 */
export function cursorPages<Key extends readonly unknown[], Page extends { next_cursor?: string | undefined }>(
  queryKey: Key,
  read: (atMs: number, cursor: { cursor?: string }) => Promise<Page>,
) {
  return infiniteQueryOptions({
    queryKey,
    queryFn: async ({ pageParam }) => {
      const at = pageParam?.at ?? Date.now();
      return { ...(await read(at, pageParam ? { cursor: pageParam.cursor } : {})), at };
    },
    initialPageParam: null as { at: number; cursor: string } | null,
    getNextPageParam: ({ next_cursor, at }) => (next_cursor ? { at, cursor: next_cursor } : null),
  });
}
