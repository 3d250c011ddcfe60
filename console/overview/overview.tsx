import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link, type LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { call } from '../api/call.js';
import { groupsQuery } from '../api/messages.js';
import { hasScope, sessionQuery } from '../api/session.js';
import { limitsQuery } from '../api/usage.js';
import { LONGER, LONGER_DEFAULT, sinceOf } from '../messages/filters.js';
import { REASONS } from '../messages/words.js';
import { Icon } from '../parts/icon.js';
import { Failed, Loading } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Countdown } from '../parts/time.js';
import { agentsText, deliveriesText, nearQuotas, stuckReasons } from './needs.js';
import { Rates } from './rates.js';

/** What changes without an event that the page follows is read so often. */
const AGAIN_MS = 10_000;
const NAMED_DELIVERIES = 10;
const often = { refetchInterval: AGAIN_MS };

/** Something that needs somebody: what, how much of it, and where to go. */
function Need(props: { tone: 'wait' | 'bad'; title: ReactNode; detail: ReactNode; to?: LinkProps }) {
  const { tone, title, detail, to } = props;
  const line = (
    <>
      <span className={`dot ${tone}`} />
      <span className="about">
        <strong>{title}</strong>
        <span className="quiet cut">{detail}</span>
      </span>
      {to && <Icon name="next" />}
    </>
  );
  return (
    <li>
      {to ? (
        <Link {...to} className="need">
          {line}
        </Link>
      ) : (
        <div className="need">{line}</div>
      )}
    </li>
  );
}

const many = (count: number, one: string, more = `${one}s`) => `${numberText(count)} ${count === 1 ? one : more}`;

function useNeeds() {
  const { data: session } = useQuery(sessionQuery);
  const isAdmin = session != null && hasScope(session, 'admin');
  const isFull = session != null && hasScope(session, 'full');
  const requests = useQuery({
    queryKey: ['requests', 'overview'],
    queryFn: () => call('/requests/get', { page_size: 1, sort: 'expires' }),
  });
  const stuck = useQuery({
    ...groupsQuery(() => ({ by: 'waits_for', waited_ms: LONGER[LONGER_DEFAULT] }), ['waits_for', LONGER_DEFAULT]),
    ...often,
  });
  const agents = useQuery({
    queryKey: ['agents', 'failing'],
    queryFn: () => call('/agents/get', { failing: true, page_size: 10 }),
    ...often,
  });
  const deliveries = useQuery({
    queryKey: ['deliveries', 'failed'],
    queryFn: () =>
      call('/webhooks/get_deliveries', {
        status: 'failed',
        since: sinceOf('24h', Date.now()),
        page_size: NAMED_DELIVERIES,
      }),
    enabled: isAdmin,
    ...often,
  });
  const quotas = useQuery({ ...limitsQuery, enabled: isFull });
  const fleet = useQuery({
    queryKey: ['agents', 'stats'],
    queryFn: async () => (await call('/agents/get_connection_stats', {})).stats,
    ...often,
  });
  return { requests, stuck, agents, deliveries, quotas, fleet };
}

/** What needs somebody now, and the last day. Nothing else. */
export function Overview() {
  const { requests, stuck, agents, deliveries, quotas, fleet } = useNeeds();
  const all: UseQueryResult<unknown>[] = [requests, stuck, agents, deliveries, quotas, fleet];
  const failed = all.find(({ error, data }) => error && data === undefined);
  // Shown at once, so that no line moves under a pointer when the one above it comes; and on, while one that failed is tried again.
  const isShown = all.every(({ isFetched, fetchStatus }) => isFetched || fetchStatus === 'idle');
  const isComplete = all.every(({ isPending, fetchStatus }) => !isPending || fetchStatus === 'idle');

  const waiting = requests.data?.count ?? 0;
  const soonest = requests.data?.requests[0];
  const reasons = stuckReasons(stuck.data ?? []);
  const failing = agents.data?.agents ?? [];
  const undelivered = deliveries.data?.count ?? 0;
  const near = quotas.data ? nearQuotas(quotas.data) : [];
  const isEmpty = fleet.data?.total === 0;
  const isCalm = waiting + reasons.length + failing.length + undelivered + near.length === 0 && !isEmpty;

  return (
    <div className="overview">
      <h1>Overview</h1>
      {failed && <Failed error={failed.error} retry={() => void failed.refetch()} />}
      {!failed && !isShown && <Loading rows={2} />}
      {!failed && isComplete && isCalm && (
        <p className="calm">
          <Icon name="check" /> Nothing needs you now.
        </p>
      )}
      {isShown && (
        <ul className="needs" aria-label="What needs somebody now">
          {waiting > 0 && (
            <Need
              tone="wait"
              title={many(waiting, 'decision waits', 'decisions wait')}
              detail={
                soonest && (
                  <>
                    The first to expire: “{soonest.input_request.title}”,{' '}
                    <Countdown at={soonest.input_request.expires_at} />
                  </>
                )
              }
              to={{ to: '/inbox', search: { box: 'open', sort: 'expires' } }}
            />
          )}
          {reasons.map(({ kind, count }) => (
            <Need
              key={kind}
              tone="bad"
              title={`${many(count, 'message')} stuck`}
              detail={`${REASONS[kind]}, for more than 5 minutes`}
              to={{ to: '/messages', search: { view: 'stuck', waits: kind } }}
            />
          ))}
          {failing[0] && (
            <Need
              tone="bad"
              title={`${many(agents.data?.count ?? 0, 'agent fails', 'agents fail')} half of the time or more`}
              detail={agentsText(failing, agents.data?.count ?? 0)}
              to={{
                to: '/fleet',
                search: { show: 'trouble', type: failing[0].agent_type, instance: failing[0].instance_id },
              }}
            />
          )}
          {undelivered > 0 && (
            <Need
              tone="bad"
              title={`${many(undelivered, 'delivery', 'deliveries')} given up within a day`}
              detail={deliveriesText(deliveries.data?.deliveries ?? [])}
              to={{ to: '/alerts', search: { time: '24h' } }}
            />
          )}
          {near.map(({ name, used, limit, share, ends_at }) => (
            <Need
              key={name}
              tone={share >= 1 ? 'bad' : 'wait'}
              title={`${Math.floor(share * 100)} % of the ${name} are used`}
              detail={
                <>
                  {numberText(Math.round(used * 100) / 100)} of {numberText(limit)}, with <Countdown at={ends_at} />
                </>
              }
              to={{ to: '/access', search: { tab: 'limits' } }}
            />
          ))}
          {isEmpty && (
            <Need
              tone="wait"
              title="No agent has joined yet"
              detail="Messages wait until one does. The README has the lines that join one."
            />
          )}
        </ul>
      )}
      <Rates />
    </div>
  );
}
