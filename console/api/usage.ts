import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { type Range, type UsageSearch, usageBody } from '../usage/search.js';
import { call } from './call.js';

const READ_EVERY_MS = 30_000;
const PAGE_SIZE = 50;

/** Who used how much, page by page. */
export const usageQuery = (search: UsageSearch) =>
  infiniteQueryOptions({
    queryKey: ['usage', 'rows', search],
    queryFn: ({ pageParam }) =>
      call('/telemetry/get_usage', { ...usageBody(search), page: pageParam, page_size: PAGE_SIZE }),
    initialPageParam: 1,
    getNextPageParam: ({ page, total_pages }) => (page < total_pages ? page + 1 : null),
    refetchInterval: READ_EVERY_MS,
    placeholderData: keepPreviousData,
  });

/** What was used on each day. */
export const daysQuery = (range: Range) =>
  queryOptions({
    queryKey: ['usage', 'days', range],
    queryFn: async () => (await call('/telemetry/get_usage', { ...usageBody({ range }), page_size: 31 })).rows,
    refetchInterval: READ_EVERY_MS,
    placeholderData: keepPreviousData,
  });

/** The limits of the tenant, and what is used of them. Scope `full`. */
export const limitsQuery = queryOptions({
  queryKey: ['limits'],
  queryFn: () => call('/tenants/get_limits', {}),
  refetchInterval: 60_000,
});
