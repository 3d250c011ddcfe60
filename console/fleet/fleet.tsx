import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import type { AgentTypeActivity } from '../../contracts/api/agents.js';
import { agentTypesQuery } from '../api/fleet.js';
import { FLEET_TYPES, follow } from '../api/live.js';
import { FindField } from '../list/choice.js';
import { useListKeys } from '../list/list-keys.js';
import { ListView } from '../list/list-view.js';
import { NoMatch } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
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
    `${numberText(in_flight)} in flight`,
    ...(queue_length > 0 ? [`${numberText(queue_length)} queued`] : []),
    ...(failed_last_hour > 0 ? [`${numberText(failed_last_hour)} failed this hour`] : []),
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

  if (list.data?.length === 0) return <EmptyFleet />;
  const online = types.reduce((sum, type) => sum + type.online, 0);
  const instances = types.reduce((sum, type) => sum + type.instances, 0);
  return (
    <ListView
      name="Fleet"
      label={['Agent types', 'Agent type']}
      className="fleet"
      count={list.data && `${numberText(online)} of ${numberText(instances)} online`}
      filters={
        <>
          <FindField
            ref={field}
            label="Agent type"
            placeholder="Find an agent type"
            value={search.q}
            change={(q) => void navigate({ search: (old) => ({ ...old, q }), replace: true })}
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
        </>
      }
      list={list}
      rows={shown}
      idOf={({ agent_type }) => agent_type}
      row={(type, isCurrent) => <TypeRow type={type} isCurrent={isCurrent} />}
      empty={
        <NoMatch
          title={search.show === 'trouble' ? 'No agent is in trouble' : undefined}
          all={
            <Link to="/fleet" search={{}}>
              Show all {types.length} types
            </Link>
          }
        />
      }
      current={search.type}
      close={close}
      hint="Select a type to see its instances."
    >
      {current && <TypeDetail key={current.agent_type} type={current} instance={search.instance} />}
      {!current && list.data && (
        <div className="empty">
          <h2>No agents of the type “{search.type}”</h2>
          <p className="quiet">None is registered, and no message waits for one. It appears here when one connects.</p>
        </div>
      )}
    </ListView>
  );
}
