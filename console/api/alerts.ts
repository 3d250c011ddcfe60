import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { type AlertsSearch, deliveriesBody } from '../alerts/search.js';
import { call } from './call.js';

/** Rules on one page; a tenant has 500 at most. */
const RULES = 100;
const PAGE_SIZE = 50;
const READ_EVERY_MS = 10_000;

/** All rules, by name. */
export const rulesQuery = queryOptions({
  queryKey: ['rules'],
  queryFn: async () => {
    const read = (page: number) => call('/policies/get_alerts', { page, page_size: RULES });
    const first = await read(1);
    const rest = await Promise.all(Array.from({ length: Math.max(0, first.total_pages - 1) }, (_, at) => read(at + 2)));
    return [first, ...rest].flatMap(({ rules }) => rules).toSorted((one, other) => one.name.localeCompare(other.name));
  },
});

/** Deliveries, page by page, the newest first. */
export function deliveriesQuery({ tab: _tab, delivery: _shown, form: _form, ...filters }: AlertsSearch) {
  return infiniteQueryOptions({
    queryKey: ['deliveries', 'list', filters],
    queryFn: ({ pageParam }) =>
      call('/webhooks/get_deliveries', {
        ...deliveriesBody(filters, Date.now()),
        page: pageParam,
        page_size: PAGE_SIZE,
      }),
    initialPageParam: 1,
    getNextPageParam: ({ page, total_pages }) => (page < total_pages ? page + 1 : null),
    refetchInterval: READ_EVERY_MS,
  });
}

/** One delivery; null where it is not kept. */
export const deliveryQuery = (deliveryId: string) =>
  queryOptions({
    queryKey: ['deliveries', 'one', deliveryId],
    queryFn: async () => (await call('/webhooks/get_deliveries', { delivery_id: deliveryId })).deliveries[0] ?? null,
    refetchInterval: READ_EVERY_MS,
  });
