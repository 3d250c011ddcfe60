import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import type { Guard } from '../../contracts/api/policies/guards.js';
import { guardsQuery } from '../api/rules.js';
import { useListKeys } from '../list/list-keys.js';
import { ListView } from '../list/list-view.js';
import { GuardDetail } from './guard-detail.js';
import { GUARD_DECISIONS, GUARDS, looksAt } from './words.js';

const route = getRouteApi('/guards');

function GuardRow({ guard, isCurrent }: { guard: Guard; isCurrent: boolean }) {
  const { enabled, decision } = guard;
  return (
    <Link
      to="/guards"
      search={{ guard: guard.guard }}
      replace
      className={`entry${isCurrent ? ' current' : ''}${enabled ? '' : ' off'}`}
      aria-current={isCurrent || undefined}
    >
      <span className="line">
        <strong className="cut">{GUARDS[guard.guard].label}</strong>
        <span className={`badge ${enabled ? GUARD_DECISIONS[decision].tone : ''}`}>
          {enabled ? GUARD_DECISIONS[decision].label : 'off'}
        </span>
      </span>
      <span className="quiet small cut">{looksAt(guard)}</span>
    </Link>
  );
}

/** The five guards, and one of them beside the list. */
export function Guards() {
  const search = route.useSearch();
  const navigate = useNavigate({ from: '/guards' });
  const list = useQuery(guardsQuery);
  const guards = list.data ?? [];
  const current = guards.find(({ guard }) => guard === search.guard);
  const close = () => void navigate({ search: {}, replace: true });
  useListKeys({
    ids: guards.map(({ guard }) => guard),
    current: search.guard,
    select: (guard) => void navigate({ search: { guard }, replace: true }),
    close,
  });
  return (
    <ListView
      name="Guards"
      label={['Guards', 'Guard']}
      count={list.data && `${guards.filter(({ enabled }) => enabled).length} of ${guards.length} on`}
      filters={<p className="quiet small">They read content, whatever policies say. The most restrictive holds.</p>}
      list={list}
      rows={guards}
      idOf={({ guard }) => guard}
      row={(guard, isCurrent) => <GuardRow guard={guard} isCurrent={isCurrent} />}
      empty={null}
      current={search.guard}
      close={close}
      hint="Select a guard to read and change it."
    >
      {current && <GuardDetail key={current.guard} guard={current} />}
    </ListView>
  );
}
