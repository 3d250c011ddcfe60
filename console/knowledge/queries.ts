import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { call } from '../api/call.js';
import type { KnowledgeSearch } from './search.js';

const PAGE_SIZE = 50;
const JOBS = 20;
/** How often a base is read again whose jobs are at work, and one without such. */
const [BUSY_MS, IDLE_MS] = [1_500, 15_000];

const nextPage = ({ page, total_pages }: { page: number; total_pages: number }) =>
  page < total_pages ? page + 1 : undefined;

/** All knowledge bases, page by page. */
export const basesQuery = infiniteQueryOptions({
  queryKey: ['bases'],
  queryFn: ({ pageParam }) => call('/knowledge_base/get', { page: pageParam, page_size: PAGE_SIZE }),
  initialPageParam: 1,
  getNextPageParam: nextPage,
});

/** What a base is called and how it is searched. */
export const baseQuery = (namespace: string) =>
  queryOptions({
    queryKey: ['base', namespace, 'itself'],
    queryFn: async () => (await call('/knowledge_base/get_by_id', { namespace })).knowledge_base,
  });

/** How much a base holds. */
export const statsQuery = (namespace: string) =>
  queryOptions({
    queryKey: ['base', namespace, 'stats'],
    queryFn: async () => (await call('/knowledge_base/get_stats', { namespace })).stats,
  });

/** The sources of a base, page by page. */
export const sourcesQuery = (namespace: string) =>
  infiniteQueryOptions({
    queryKey: ['base', namespace, 'sources'],
    queryFn: ({ pageParam }) =>
      call('/knowledge_base/get_sources', { namespace, page: pageParam, page_size: PAGE_SIZE }),
    initialPageParam: 1,
    getNextPageParam: nextPage,
  });

/** The newest jobs of a base, read again while one of them is at work. */
export const jobsQuery = (namespace: string) =>
  queryOptions({
    queryKey: ['base', namespace, 'jobs'],
    queryFn: async () => (await call('/knowledge_base/get_jobs', { namespace, page_size: JOBS })).jobs,
    refetchInterval: ({ state }) => (state.data?.some(({ status }) => status === 'processing') ? BUSY_MS : IDLE_MS),
  });

/** One job with its documents. @param isOver it changes no more */
export const jobQuery = (jobId: string, isOver: boolean) =>
  queryOptions({
    queryKey: ['job', jobId, isOver],
    queryFn: () => call('/knowledge_base/get_status', { job_id: jobId }),
    refetchInterval: isOver ? false : BUSY_MS,
  });

/** The body of a query. */
export const searchBody = (namespace: string, { q = '', mode }: KnowledgeSearch) => ({
  namespace,
  query: q,
  ...(mode && { mode }),
});

/** What a query finds. */
export const searchQuery = (namespace: string, search: KnowledgeSearch) =>
  queryOptions({
    queryKey: ['base', namespace, 'query', search.q, search.mode],
    queryFn: () => call('/knowledge_base/query', searchBody(namespace, search)),
    enabled: search.q !== undefined,
    retry: false,
  });
