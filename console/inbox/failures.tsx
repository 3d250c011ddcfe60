import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { requestsQuery } from '../api/requests.js';
import { Icon } from '../parts/icon.js';
import { Ago } from '../parts/time.js';

/** Approvals of which came nothing are shown for a day. */
const SHOWN_MS = 86_400_000;
const SEEN = 'console.failures-seen';

/** Approved, and then failed: back in the inbox until somebody has seen it. */
export function Failures() {
  const { data } = useInfiniteQuery(requestsQuery({ state: 'decided', sort: 'newest' }));
  const [seenUntil, setSeenUntil] = useState(() => localStorage.getItem(SEEN) ?? '');
  const since = [seenUntil, new Date(Date.now() - SHOWN_MS).toISOString()].sort().at(-1) ?? '';
  const failed = (data?.pages[0]?.requests ?? []).filter(
    ({ outcome }) => outcome?.state === 'failed' && (outcome.at ?? '') > since,
  );
  if (failed.length === 0) return null;
  const seen = () => {
    const now = new Date().toISOString();
    localStorage.setItem(SEEN, now);
    setSeenUntil(now);
  };
  return (
    <section className="failures" aria-label="Approved, then failed">
      <header>
        <strong>Approved, then failed</strong>
        <button type="button" className="link" onClick={seen}>
          <Icon name="cross" /> Seen
        </button>
      </header>
      <ul>
        {failed.slice(0, 3).map(({ request_id, input_request, outcome }) => (
          <li key={request_id}>
            <Link to="/inbox" search={(search) => ({ ...search, request: request_id })}>
              <span className="cut">{input_request.title}</span> <code>{outcome?.error_code}</code>{' '}
              {outcome?.at && <Ago at={outcome.at} />}
            </Link>
          </li>
        ))}
      </ul>
      {failed.length > 3 && <p className="quiet">and {failed.length - 3} more among the decided</p>}
    </section>
  );
}
