import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import type { RequestRecord } from '../../contracts/api/policies/requests.js';
import { type RequestFilters, requestsBody } from '../inbox/filters.js';
import { saveFile } from '../parts/save.js';
import { call } from './call.js';

/** A list of requests, page by page. */
export const requestsQuery = (filters: RequestFilters) =>
  infiniteQueryOptions({
    queryKey: ['requests', filters],
    queryFn: ({ pageParam }) => call('/requests/get', requestsBody(filters, pageParam)),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor }) => next_cursor,
  });

/** One request, whole. */
export const requestQuery = (requestId: string) =>
  queryOptions({
    queryKey: ['request', requestId],
    queryFn: async () => (await call('/requests/get_by_id', { request_id: requestId })).request,
  });

/** Earlier decisions about the same tool and arguments. */
export const similarQuery = (requestId: string) =>
  queryOptions({
    queryKey: ['similar', requestId],
    queryFn: async () => (await call('/requests/get_similar', { request_id: requestId })).requests,
  });

/** Where a request is answered: at its message, or at its plan. */
export const subjectOf = ({ message_id, plan_id }: RequestRecord): string => message_id ?? plan_id ?? '';

/** Saves the signed receipt of a decision as a file that `fleet receipts verify` takes. @throws ApiError */
export async function saveReceipt(requestId: string): Promise<void> {
  const { receipt } = await call('/requests/get_receipt', { request_id: requestId });
  saveFile(`receipt-${requestId}.jwt`, new Blob([receipt], { type: 'application/jwt' }));
}
