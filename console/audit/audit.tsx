import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import type { AuditEntry } from '../../contracts/api/tenants/audit.js';
import { auditQuery } from '../api/audit.js';
import { Choice, TypedFilter, withFilters } from '../list/choice.js';
import { useListKeys } from '../list/list-keys.js';
import { CopyCurl } from '../parts/copy.js';
import { Split } from '../parts/split.js';
import { Failed, Loading } from '../parts/states.js';
import { Ago } from '../parts/time.js';
import { EntryDetail } from './entry-detail.js';
import { type AuditSearch, actionText, auditBody, KINDS } from './search.js';

const route = getRouteApi('/audit');

const TIME_LABELS = [
  ['', 'Any time'],
  ['1h', 'Last hour'],
  ['24h', 'Last day'],
  ['7d', 'Last 7 days'],
  ['30d', 'Last 30 days'],
] as const;

function EntryRow({ entry, isCurrent }: { entry: AuditEntry; isCurrent: boolean }) {
  const { audit_id, principal, action, at } = entry;
  return (
    <Link
      from="/audit"
      to="/audit"
      search={(old) => ({ ...old, entry: audit_id })}
      replace
      className={`entry${isCurrent ? ' current' : ''}`}
      aria-current={isCurrent || undefined}
    >
      <span className="line">
        <strong className="cut">{actionText(entry)}</strong>
        <span className="quiet small">
          <Ago at={at} short />
        </span>
      </span>
      <span className="line quiet small">
        <span className="cut">{principal.name ?? principal.id}</span>
        <code>{action}</code>
      </span>
    </Link>
  );
}

type Change = (set: { [Name in keyof AuditSearch]?: AuditSearch[Name] | '' }) => void;

function Filters({ search, change }: { search: AuditSearch; change: Change }) {
  const kind = search.action?.replace(/\.\*$/, '') ?? '';
  const kinds = KINDS.map((each) => [each, each.replaceAll('_', ' ')] as const);
  const isOne = search.action !== undefined && !search.action.endsWith('.*');
  return (
    <div className="choices">
      <Choice
        label="Action"
        value={kind}
        options={[['', 'Any action'], ...kinds, ...(isOne ? [[kind, kind] as const] : [])]}
        onChange={(value) => change({ action: value && `${value}.*` })}
      />
      <Choice label="Time" value={search.time ?? ''} options={TIME_LABELS} onChange={(time) => change({ time })} />
      <TypedFilter
        id="audit-principal"
        label="By whom (id)"
        value={search.principal}
        onChange={(principal) => change({ principal })}
      />
      <TypedFilter label="Of what (id)" value={search.target} onChange={(target) => change({ target })} />
    </div>
  );
}

/** Who decided and changed what. */
export function Audit() {
  const search = route.useSearch();
  const navigate = useNavigate({ from: '/audit' });
  const list = useInfiniteQuery(auditQuery(search));
  const rows = list.data?.pages.flatMap(({ entries }) => entries) ?? [];
  const current = search.entry;
  const known = rows.find(({ audit_id }) => audit_id === current);
  const change: Change = (set) =>
    void navigate({ search: ({ entry: _, ...old }) => withFilters<AuditSearch>(old, set) });
  const show = (entry: string) => void navigate({ search: (old) => ({ ...old, entry }), replace: true });
  const close = () => void navigate({ search: ({ entry: _, ...old }) => old, replace: true });
  const ids = rows.map(({ audit_id }) => audit_id);
  useListKeys({
    ids,
    current,
    select: show,
    close,
    more: { '/': () => document.getElementById('audit-principal')?.focus() },
  });
  return (
    <Split
      name="Audit"
      label={['Audit', 'Entry']}
      isOpen={current !== undefined}
      close={close}
      list={
        <>
          <header className="filters">
            <h1>Audit</h1>
            <Filters search={search} change={change} />
          </header>
          {list.isPending && <Loading />}
          {list.error && !list.data && <Failed error={list.error} retry={() => void list.refetch()} />}
          {list.data && rows.length === 0 && (
            <div className="empty">
              <h2>Nothing matches</h2>
              <p className="quiet">Every change of what decides in the tenant, and every decision, is an entry.</p>
              <Link to="/audit" search={{}}>
                Show all entries
              </Link>
            </div>
          )}
          <ul className="entries">
            {rows.map((entry) => (
              <li key={entry.audit_id} id={entry.audit_id}>
                <EntryRow entry={entry} isCurrent={entry.audit_id === current} />
              </li>
            ))}
            {list.hasNextPage && (
              <li className="more">
                <button type="button" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
                  Show more
                </button>
              </li>
            )}
          </ul>
          <p className="list-foot small">
            <span className="quiet">Export as JSON Lines:</span>
            <CopyCurl path="/audit/get" body={{ ...auditBody(search, Date.now()), sort: 'oldest', format: 'jsonl' }} />
          </p>
        </>
      }
    >
      {current !== undefined ? (
        <EntryDetail key={current} auditId={current} known={known} />
      ) : (
        <div className="empty">
          <p className="quiet">Select an entry to see what was changed.</p>
        </div>
      )}
    </Split>
  );
}
