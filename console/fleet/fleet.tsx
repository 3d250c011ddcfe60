import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import type { AgentTypeActivity } from '../../contracts/api/agents.js';
import { agentTypesQuery } from '../api/fleet.js';
import { FLEET_TYPES, follow } from '../api/live.js';
import { useListKeys } from '../list/list-keys.js';
import { Split } from '../parts/split.js';
import { Failed, Loading } from '../parts/states.js';
import { EmptyFleet } from './empty-fleet.js';
import { type FleetSearch, healthOf, shownTypes } from './health.js';
import { HealthBadge } from './health-badge.js';
import { TypeDetail } from './type-detail.js';

const route = getRouteApi('/fleet');

const SHOWN: { show: FleetSearch['show']; label: string }[] = [
  { show: undefined, label: 'All' },
  { show: 'trouble', label: 'In trouble' },
  { show: 'waiting', label: 'With a queue' },
  { show: 'offline', label: 'Offline' },
];

function TypeRow({ type, isCurrent }: { type: AgentTypeActivity; isCurrent: boolean }) {
  const { agent_type, instances, online, in_flight, queue_length, failed_last_hour, last_error } = type;
  const health = healthOf(type);
  const facts = [
    `${in_flight.toLocaleString()} in flight`,
    ...(queue_length > 0 ? [`${queue_length.toLocaleString()} queued`] : []),
    ...(failed_last_hour > 0 ? [`${failed_last_hour.toLocaleString()} failed this hour`] : []),
    ...(health.tone === 'bad' && last_error ? [last_error] : []),
  ];
  return (
    <Link
      from="/fleet"
      to="/fleet"
      search={({ instance: _, ...old }) => ({ ...old, type: agent_type })}
      replace
      className={`entry${isCurrent ? ' current' : ''}`}
      aria-current={isCurrent || undefined}
    >
      <span className="line">
        <strong className="cut">{agent_type}</strong>
        <HealthBadge health={health} />
      </span>
      <span className="line quiet small">
        <span className="cut">{facts.join(' · ')}</span>
        <span className="online">
          {online} of {instances} online
        </span>
      </span>
    </Link>
  );
}

/** Agent types: which of them fail and since when, what waits for them, and one of them beside the list. */
export function Fleet() {
  const search = route.useSearch();
  const navigate = useNavigate({ from: '/fleet' });
  const client = useQueryClient();
  const list = useQuery(agentTypesQuery);
  const field = useRef<HTMLInputElement>(null);
  useEffect(
    () => follow({ types: FLEET_TYPES }, () => void client.invalidateQueries({ queryKey: ['fleet'] })),
    [client],
  );

  const types = list.data ?? [];
  const shown = shownTypes(types, search);
  const current = types.find(({ agent_type }) => agent_type === search.type);
  const close = () => void navigate({ search: ({ type: _, instance: __, ...old }) => old, replace: true });
  useListKeys({
    ids: shown.map(({ agent_type }) => agent_type), // those in trouble first
    current: search.type,
    select: (type) => void navigate({ search: ({ instance: _, ...old }) => ({ ...old, type }), replace: true }),
    close,
    field,
    more: { t: () => search.type && void navigate({ to: '/talk', search: { agent: search.type } }) },
  });

  if (list.error && !list.data) return <Failed error={list.error} retry={() => void list.refetch()} />;
  if (!list.data) return <Loading />;
  if (types.length === 0) return <EmptyFleet />;
  const online = types.reduce((sum, type) => sum + type.online, 0);
  const instances = types.reduce((sum, type) => sum + type.instances, 0);
  return (
    <Split
      name="Fleet"
      label={['Agent types', 'Agent type']}
      className="fleet"
      isOpen={search.type !== undefined}
      close={close}
      list={
        <>
          <header className="filters">
            <div className="line">
              <h1>Fleet</h1>
              <span className="quiet" role="status">
                {online.toLocaleString()} of {instances.toLocaleString()} online
              </span>
            </div>
            <input
              ref={field}
              type="search"
              aria-label="Agent type"
              placeholder="Find an agent type"
              value={search.q ?? ''}
              onChange={({ target }) =>
                void navigate({ search: (old) => ({ ...old, q: target.value || undefined }), replace: true })
              }
            />
            <nav aria-label="Which">
              {SHOWN.map(({ show, label }) => (
                <Link
                  key={label}
                  to="/fleet"
                  search={(old) => ({ ...old, show })}
                  aria-current={search.show === show ? 'page' : undefined}
                  activeProps={{}}
                >
                  {label}
                </Link>
              ))}
            </nav>
          </header>
          <ul className="entries">
            {shown.map((type) => (
              <li key={type.agent_type} id={type.agent_type}>
                <TypeRow type={type} isCurrent={type.agent_type === search.type} />
              </li>
            ))}
          </ul>
          {shown.length === 0 && (
            <div className="empty">
              <h2>{search.show === 'trouble' ? 'No agent is in trouble' : 'Nothing matches'}</h2>
              <Link to="/fleet" search={{}}>
                Show all {types.length} types
              </Link>
            </div>
          )}
        </>
      }
    >
      {current ? (
        <TypeDetail key={current.agent_type} type={current} instance={search.instance} />
      ) : (
        <div className="empty">
          {search.type === undefined ? (
            <p className="quiet">Select a type to see its instances.</p>
          ) : (
            <>
              <h2>No agents of the type “{search.type}”</h2>
              <p className="quiet">
                None is registered, and no message waits for one. It appears here when one connects.
              </p>
            </>
          )}
        </div>
      )}
    </Split>
  );
}
