import { Link } from '@tanstack/react-router';
import { Icon } from '../parts/icon.js';
import type { InboxSearch } from './filters.js';

/** What to do where a list is empty. */
export function Empty({ search }: { search: InboxSearch }) {
  const { request: _shown, box = 'mine', sort: _order, ...filters } = search;
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <div className="empty">
      <Icon name="check" />
      <h2>{isFiltered ? 'Nothing matches' : box === 'decided' ? 'Nothing was decided yet' : 'Nothing waits'}</h2>
      {isFiltered ? (
        <Link to="/inbox" search={{ box }}>
          Take the filters away
        </Link>
      ) : box === 'mine' ? (
        <>
          <p className="quiet">
            What agents, policies, guards and plans ask appears here at once, and you may close this page meanwhile.
          </p>
          <Link to="/inbox" search={{ box: 'open' }}>
            See what waits for others
          </Link>
        </>
      ) : (
        <p className="quiet">
          An agent asks with <code>task.ask()</code>, a policy with the decision <code>require_approval</code>.
        </p>
      )}
    </div>
  );
}
