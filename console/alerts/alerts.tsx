import { getRouteApi } from '@tanstack/react-router';
import { Deliveries } from './deliveries.js';
import { Rules } from './rules.js';

const route = getRouteApi('/alerts');

/** Alert rules, and what was delivered for them. */
export function Alerts() {
  const search = route.useSearch();
  return search.tab === 'rules' ? <Rules search={search} /> : <Deliveries search={search} />;
}
