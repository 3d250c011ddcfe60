import { queryOptions } from '@tanstack/react-query';
import { call } from './call.js';

const PAGE_SIZE = 100;
/** Pages that are read; the list says so where there are more. */
const PAGES_MAX = 10;

/** Credentials and people, the newest first, and how many there are in all. */
export const credentialsQuery = queryOptions({
  queryKey: ['credentials'],
  queryFn: async () => {
    const read = (page: number) => call('/credentials/get', { page, page_size: PAGE_SIZE });
    const first = await read(1);
    const more = Math.max(0, Math.min(PAGES_MAX, first.total_pages) - 1);
    const rest = await Promise.all(Array.from({ length: more }, (_, at) => read(at + 2)));
    return { credentials: [first, ...rest].flatMap(({ credentials }) => credentials), count: first.count };
  },
});

/** The prices of models. */
export const pricesQuery = queryOptions({
  queryKey: ['prices'],
  queryFn: async () => (await call('/tenants/get_prices', {})).prices,
});
