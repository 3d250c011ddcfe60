import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type RefObject, useRef } from 'react';
import type { Policy } from '../../contracts/api/policies/policies.js';
import { policiesQuery } from '../api/rules.js';
import { FilterChoice, FindField } from '../list/choice.js';
import { useListKeys } from '../list/list-keys.js';
import { ListView } from '../list/list-view.js';
import { Icon } from '../parts/icon.js';
import { useKeys } from '../parts/keys.js';
import { NoMatch } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Countdown } from '../parts/time.js';
import { DraftedPolicy, EditPolicy, NewPolicy } from './editor.js';
import { PolicyDetail } from './policy-detail.js';
import { type PoliciesSearch, SCOPES } from './search.js';
import { TryOut } from './try-out.js';
import { callsWords, conditionWords, DECISIONS, isActive, SCOPE_WORDS, shownPolicies, whyInactive } from './words.js';

const route = getRouteApi('/policies');

const SHOWN: { show: PoliciesSearch['show']; label: string }[] = [
  { show: undefined, label: 'All' },
  { show: 'active', label: 'Active' },
  { show: 'inactive', label: 'Inactive' },
];

function PolicyRow({ policy, isCurrent }: { policy: Policy; isCurrent: boolean }) {
  const { policy_id, name, decision, match, priority, end_at } = policy;
  const inactive = whyInactive(policy, Date.now());
  const active = inactive === undefined;
  return (
    <Link
      from="/policies"
      to="/policies"
      search={(old) => ({ ...old, policy: policy_id })}
      replace
      className={`entry${isCurrent ? ' current' : ''}${active ? '' : ' off'}`}
      aria-current={isCurrent || undefined}
    >
      <span className="line">
        <strong className="cut">{name}</strong>
        <span className={`badge ${active ? DECISIONS[decision].tone : ''}`}>{DECISIONS[decision].label}</span>
      </span>
      <span className="line quiet small">
        <span className="cut">{conditionWords(match).join(' · ') || 'everything'}</span>
        <span className="online">
          {inactive ?? (end_at ? <Countdown at={end_at} /> : (callsWords(policy) ?? `priority ${priority}`))}
        </span>
      </span>
    </Link>
  );
}

function Empty() {
  return (
    <div className="empty">
      <Icon name="policies" />
      <h2>No policies yet</h2>
      <p className="quiet">
        Without a policy everything is allowed. A policy allows, denies, asks a person, or records: messages, tool
        calls, plans and sessions. Or open a request in the inbox, and choose “Always like this”.
      </p>
      <Link to="/policies" search={{ panel: 'new' }} className="button">
        New policy
      </Link>
    </div>
  );
}

function Filters({ search, field }: { search: PoliciesSearch; field: RefObject<HTMLInputElement | null> }) {
  const navigate = useNavigate({ from: '/policies' });
  const filter = (set: PoliciesSearch) => void navigate({ search: (old) => ({ ...old, ...set }), replace: true });
  return (
    <>
      <div className="line choices">
        <FindField
          ref={field}
          label="Policy"
          placeholder="Find a policy"
          value={search.q}
          change={(q) => filter({ q })}
        />
        <FilterChoice
          label="About"
          any="Everything"
          value={search.scope}
          values={SCOPES}
          text={(scope) => SCOPE_WORDS[scope].label}
          change={(scope) => filter({ scope })}
        />
      </div>
      <nav aria-label="Which">
        {SHOWN.map(({ show, label }) => (
          <Link
            key={label}
            to="/policies"
            search={(old) => ({ ...old, show })}
            aria-current={search.show === show ? 'page' : undefined}
            activeProps={{}}
          >
            {label}
          </Link>
        ))}
      </nav>
    </>
  );
}

/** The list, and one policy beside it. */
function List({ search }: { search: PoliciesSearch }) {
  const list = useQuery(policiesQuery);
  const policies = list.data ?? [];
  const navigate = useNavigate({ from: '/policies' });
  const field = useRef<HTMLInputElement>(null);
  const shown = shownPolicies(policies, search, Date.now());
  const current = policies.find(({ policy_id }) => policy_id === search.policy);
  const close = () => void navigate({ search: ({ policy: _, ...old }) => old, replace: true });
  useListKeys({
    ids: shown.map(({ policy_id }) => policy_id),
    current: search.policy,
    select: (id) => void navigate({ search: (old) => ({ ...old, policy: id }), replace: true }),
    close,
    field,
  });
  useKeys({ e: () => current && void navigate({ search: (old) => ({ ...old, panel: 'edit' }) }) });
  if (list.data?.length === 0) return <Empty />;
  const active = policies.filter((policy) => isActive(policy, Date.now())).length;
  return (
    <ListView
      name="Policies"
      label={['Policies', 'Policy']}
      className="policies"
      count={list.data && `${numberText(active)} active`}
      actions={
        <>
          <Link to="/policies" search={{ panel: 'test' }} className="button">
            Try
          </Link>
          <Link to="/policies" search={{ panel: 'new' }} className="button">
            New
          </Link>
        </>
      }
      filters={<Filters search={search} field={field} />}
      list={list}
      rows={shown}
      idOf={({ policy_id }) => policy_id}
      groupOf={({ scope }) => SCOPE_WORDS[scope].label}
      row={(policy, isCurrent) => <PolicyRow policy={policy} isCurrent={isCurrent} />}
      empty={
        <NoMatch
          all={
            <Link to="/policies" search={{}}>
              Show all {numberText(policies.length)} policies
            </Link>
          }
        />
      }
      current={search.policy}
      close={close}
      hint="Select a policy to read it."
    >
      {current && <PolicyDetail key={current.policy_id} policy={current} />}
      {!current && list.data && (
        <div className="empty">
          <h2>This policy is not here</h2>
          <p className="quiet">It is deleted, or of another tenant.</p>
        </div>
      )}
    </ListView>
  );
}

/** Policies in the order in which they are looked at, and the pages that create, change and try them. */
export function Policies() {
  const search = route.useSearch();
  const navigate = useNavigate({ from: '/policies' });
  const list = useQuery(policiesQuery);
  const back = () => void navigate({ search: ({ panel: _, request: __, tool: ___, ...old }) => old });
  // What is typed into the other pages is not lost by a key.
  useKeys({ escape: () => search.panel === 'test' && back() });
  const { panel, request, tool, policy } = search;
  if (panel === 'new' && request !== undefined) return <DraftedPolicy requestId={request} back={back} />;
  if (panel === 'new') return <NewPolicy key={tool} tool={tool} back={back} />;
  const current = list.data?.find(({ policy_id }) => policy_id === policy);
  if (panel === 'test' && list.data) return <TryOut key={policy} policy={current} back={back} />;
  if (panel === 'edit' && current) return <EditPolicy policy={current} back={back} />;
  return <List search={search} />;
}
