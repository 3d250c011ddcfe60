import { Link } from '@tanstack/react-router';
import { numberText } from '../parts/texts.js';

/** The heading of both lists, which leads to the other one. */
export function Heading({ tab, count }: { tab: 'rules' | 'deliveries'; count: number | undefined }) {
  return (
    <>
      <div className="line">
        <h1>Alerts</h1>
        <span className="quiet" role="status">
          {count !== undefined && numberText(count)}
        </span>
      </div>
      <nav aria-label="Alerts">
        <Link
          to="/alerts"
          search={{}}
          aria-current={tab === 'deliveries' ? 'page' : undefined}
          activeOptions={{ exact: true }}
        >
          Deliveries
        </Link>
        <Link
          to="/alerts"
          search={{ tab: 'rules' }}
          aria-current={tab === 'rules' ? 'page' : undefined}
          activeOptions={{ exact: true }}
        >
          Rules
        </Link>
      </nav>
    </>
  );
}
