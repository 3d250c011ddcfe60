import type { BodyOf } from '../api/call.js';

const BOXES = ['mine', 'open', 'decided', 'all'] as const;
const KINDS = ['approval', 'form', 'confirmation'] as const;
const SOURCES = ['policy', 'guard', 'agent', 'plan'] as const;
const SORTS = ['oldest', 'newest', 'expires'] as const;

/** What the address of the inbox says: filters, and the request that is shown beside the list. */
export interface InboxSearch {
  box?: (typeof BOXES)[number];
  sort?: (typeof SORTS)[number];
  kind?: (typeof KINDS)[number];
  source?: (typeof SOURCES)[number];
  tool?: string;
  agent_type?: string;
  user_id?: string;
  approver?: string;
  request?: string;
}

/** What a list of requests is narrowed to. */
export type RequestFilters = Omit<BodyOf<'/requests/get'>, 'page_size' | 'cursor'>;

/** The filters that people set by hand, with their values where these are known. */
export const FIELDS: { name: keyof InboxSearch & keyof RequestFilters; label: string; values?: readonly string[] }[] = [
  { name: 'tool', label: 'Tool' },
  { name: 'agent_type', label: 'Agent' },
  { name: 'user_id', label: 'For user' },
  { name: 'approver', label: 'Approver' },
  { name: 'kind', label: 'Kind', values: KINDS },
  { name: 'source', label: 'Asked by', values: SOURCES },
  { name: 'sort', label: 'Order', values: SORTS },
];

const TEXT_MAX = 256;

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parseInboxSearch(search: Record<string, unknown>): InboxSearch {
  const text = (name: string) => {
    const value = search[name];
    return typeof value === 'string' && value !== '' && value.length <= TEXT_MAX ? value : undefined;
  };
  const one = <Value extends string>(name: string, values: readonly Value[]) =>
    values.find((value) => value === search[name]);
  const found: InboxSearch = {
    box: one('box', BOXES),
    sort: one('sort', SORTS),
    kind: one('kind', KINDS),
    source: one('source', SOURCES),
    tool: text('tool'),
    agent_type: text('agent_type'),
    user_id: text('user_id'),
    approver: text('approver'),
    request: text('request'),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

/** The list that an address asks for. */
export function filtersOf({ request: _shown, box = 'mine', ...filters }: InboxSearch): RequestFilters {
  if (box === 'mine') return { ...filters, state: 'open', mine: true };
  const sort = filters.sort ?? (box === 'open' ? 'oldest' : 'newest');
  return { ...filters, sort, state: box };
}

/** The list that the page begins with; null where that is another view. */
export function firstFilters({ pathname, search }: Pick<Location, 'pathname' | 'search'>): RequestFilters | null {
  if (!/^\/console(\/(inbox)?)?$/.test(pathname)) return null;
  return filtersOf(parseInboxSearch(Object.fromEntries(new URLSearchParams(search))));
}

const PAGE_SIZE = 50;

/** Asks for a page of a list of requests; for the first one without a cursor. */
export const requestsBody = (filters: RequestFilters, cursor?: string) => ({
  ...filters,
  page_size: PAGE_SIZE,
  ...(cursor && { cursor }),
});
