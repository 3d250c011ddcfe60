import { getRouteApi, Link } from '@tanstack/react-router';
import { Credentials } from './credentials.js';
import { Limits } from './limits.js';

const route = getRouteApi('/access');

/** Who may do what in the tenant, and how much of it. */
export function Access() {
  const search = route.useSearch();
  if (search.tab !== 'limits') return <Credentials search={search} />;
  return (
    <div className="overview limits-page">
      <div className="line page-head">
        <h1>Access</h1>
        <nav aria-label="Access" className="segments">
          <Link to="/access" search={{}} activeOptions={{ exact: true }}>
            Credentials and people
          </Link>
          <Link to="/access" search={{ tab: 'limits' }} activeOptions={{ exact: true }}>
            Limits and prices
          </Link>
        </nav>
      </div>
      <Limits />
    </div>
  );
}
