import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import type { SessionSummary } from '../../contracts/api/sessions.js';
import { agentTypesQuery } from '../api/fleet.js';
import { follow, isShort, SESSION_TYPES } from '../api/live.js';
import { FilterChoice } from '../list/choice.js';
import { useListKeys } from '../list/list-keys.js';
import { ListView } from '../list/list-view.js';
import { countText, WITHIN } from '../messages/filters.js';
import { Badge } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import { nameOf } from './name.js';
import { sessionsQuery } from './queries.js';
import { type SessionsSearch, STATUSES } from './search.js';
import { SessionDetail } from './session-detail.js';

const route = getRouteApi('/sessions');

function SessionRow({ session, isCurrent }: { session: SessionSummary; isCurrent: boolean }) {
  const { session_id, status, sent_by, total_turns, total_tokens, created_at } = session;
  return (
    <Link
      from="/sessions"
      to="/sessions"
      search={(old) => ({ ...old, session: session_id })}
      replace
      className={`entry${isCurrent ? ' current' : ''}`}
      aria-current={isCurrent || undefined}
    >
      <span className="line">
        <strong className="cut">{nameOf(session)}</strong>
        <Badge state={status} />
      </span>
      <span className="line quiet small">
        <span className="cut">
          {numberText(total_turns)} {total_turns === 1 ? 'message' : 'messages'}
          {total_tokens > 0 && ` · ${numberText(total_tokens)} tokens`}
          {` · by ${sent_by.type} ${sent_by.type === 'agent' ? sent_by.id : `…${sent_by.id.slice(-6)}`}`}
        </span>
        <Ago at={created_at} />
      </span>
    </Link>
  );
}

/** Which sessions the list has. */
function Filters({ search, field }: { search: SessionsSearch; field: React.RefObject<HTMLInputElement | null> }) {
  const navigate = useNavigate({ from: '/sessions' });
  const { data: types = [] } = useQuery(agentTypesQuery);
  const { status, time, agent, user } = search;
  const filter = (set: SessionsSearch) =>
    void navigate({ search: ({ session: _, ...old }) => ({ ...old, ...set }), replace: true });
  const find = (typed: string) => typed.trim() !== (user ?? '') && filter({ user: typed.trim() || undefined });
  const agents = [...new Set([...types.map(({ agent_type }) => agent_type), ...(agent === undefined ? [] : [agent])])];
  return (
    <>
      <input
        ref={field}
        key={user}
        type="search"
        aria-label="User"
        placeholder="Find by the id of a user"
        defaultValue={user ?? ''}
        onBlur={({ target }) => find(target.value)}
        onChange={({ target }) => target.value === '' && find('')}
        onKeyDown={({ key, currentTarget }) => key === 'Enter' && find(currentTarget.value)}
      />
      <div className="line choices">
        <FilterChoice
          label="State"
          any="All states"
          value={status}
          values={STATUSES}
          change={(to) => filter({ status: to })}
        />
        <FilterChoice
          label="Agent"
          any="All agents"
          value={agent}
          values={agents}
          change={(to) => filter({ agent: to })}
        />
        <FilterChoice
          label="Opened within"
          any="Any time"
          value={time}
          values={WITHIN}
          text={(one) => `Last ${one}`}
          change={(to) => filter({ time: to })}
        />
      </div>
    </>
  );
}

function Empty({ search: { session: _, ...filters } }: { search: SessionsSearch }) {
  return (
    <div className="empty">
      {Object.keys(filters).length > 0 ? (
        <>
          <h2>Nothing matches</h2>
          <Link to="/sessions" search={{}}>
            Take the filters away
          </Link>
        </>
      ) : (
        <>
          <h2>No sessions yet</h2>
          <p className="quiet">A session is a conversation. The first message of one opens it.</p>
          <Link to="/talk" search={{}}>
            Begin one
          </Link>
        </>
      )}
    </div>
  );
}

/** Sessions: the list, and one of them with its conversation beside it. */
export function Sessions() {
  const search = route.useSearch();
  const current = search.session;
  const navigate = useNavigate({ from: '/sessions' });
  const client = useQueryClient();
  const list = useInfiniteQuery(sessionsQuery(search));
  const field = useRef<HTMLInputElement>(null);
  useEffect(
    () =>
      follow({ types: SESSION_TYPES }, () => {
        void client.invalidateQueries({ queryKey: ['sessions'], predicate: isShort });
        for (const queryKey of [['session-details'], ['talk'], ['request']])
          void client.invalidateQueries({ queryKey });
      }),
    [client],
  );
  const sessions = list.data?.pages.flatMap((page) => page.sessions) ?? [];
  const counted = list.data?.pages[0];
  const select = (session: string) => void navigate({ search: (old) => ({ ...old, session }), replace: true });
  const close = () => void navigate({ search: ({ session: _, ...old }) => old, replace: true });
  useListKeys({
    ids: sessions.map(({ session_id }) => session_id),
    ...{ current, select, close, field },
    more: { t: () => current && void navigate({ to: '/talk', search: { session: current } }) },
  });
  return (
    <ListView
      name="Sessions"
      label={['Sessions', 'Session']}
      className="sessions"
      count={counted && countText(counted)}
      filters={<Filters search={search} field={field} />}
      list={list}
      rows={sessions}
      idOf={({ session_id }) => session_id}
      row={(session, isCurrent) => <SessionRow session={session} isCurrent={isCurrent} />}
      empty={<Empty search={search} />}
      current={current}
      close={close}
      hint="Select a session to read it."
    >
      {current && <SessionDetail key={current} sessionId={current} />}
    </ListView>
  );
}
