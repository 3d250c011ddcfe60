import { queryOptions } from '@tanstack/react-query';
import { call } from '../api/call.js';
import { cursorPages } from '../api/pages.js';
import { type PlansSearch, plansQueryOf } from './search.js';

const PAGE_SIZE = 50;

/** A list of plans, page by page. */
export const plansQuery = ({ plan: _plan, step: _step, ...search }: PlansSearch) =>
  cursorPages(['plans', search], (atMs, cursor) =>
    call('/plans/get', { ...plansQueryOf(search, atMs), page_size: PAGE_SIZE, ...cursor }),
  );

/** One plan with its steps. */
export const planQuery = (planId: string) =>
  queryOptions({
    queryKey: ['plan', planId],
    queryFn: async () => (await call('/plans/get_by_id', { plan_id: planId })).plan,
  });
