import { queryOptions } from '@tanstack/react-query';
import type { Policy } from '../../contracts/api/policies/policies.js';
import { call } from './call.js';

const PAGE_SIZE = 100;
/** As many as a tenant may have. */
const PAGES_MAX = 20;

async function readPolicies(): Promise<Policy[]> {
  const all: Policy[] = [];
  for (let page = 1; page <= PAGES_MAX; page += 1) {
    const { policies, total_pages } = await call('/policies/get_policies', { page, page_size: PAGE_SIZE });
    all.push(...policies);
    if (page >= total_pages) break;
  }
  return all;
}

/** All policies of the tenant. */
export const policiesQuery = queryOptions({ queryKey: ['policies'], queryFn: readPolicies });

const HISTORY = 5;

/** Who made and changed something, the newest first. @param action all of a kind: `policy.*` */
export const historyQuery = (target: string, action: string) =>
  queryOptions({
    queryKey: ['history', target, action],
    queryFn: async () => (await call('/audit/get', { target, action, page_size: HISTORY })).entries,
  });

/** The five guards with their settings. */
export const guardsQuery = queryOptions({
  queryKey: ['guards'],
  queryFn: async () => (await call('/policies/get_guards', {})).guards,
});

/** The tools that agents and the platform offer. */
export const toolsQuery = queryOptions({
  queryKey: ['tools'],
  queryFn: async () => (await call('/tools/get', {})).tools,
});
