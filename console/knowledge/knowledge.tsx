import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import type { KnowledgeBase } from '../../contracts/api/knowledge/knowledge.js';
import { hasScope, sessionQuery } from '../api/session.js';
import { FindField } from '../list/choice.js';
import { useListKeys } from '../list/list-keys.js';
import { ListView } from '../list/list-view.js';
import { NoMatch } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import { BaseDetail } from './base-detail.js';
import { NewBase } from './new-base.js';
import { basesQuery } from './queries.js';

const route = getRouteApi('/knowledge');

function BaseRow({ base, isCurrent }: { base: KnowledgeBase; isCurrent: boolean }) {
  const { namespace, display_name, description, visibility, updated_at } = base;
  return (
    <Link
      from="/knowledge"
      to="/knowledge"
      search={({ find }) => ({ ...(find !== undefined && { find }), base: namespace })}
      replace
      className={`entry${isCurrent ? ' current' : ''}`}
      aria-current={isCurrent || undefined}
    >
      <span className="line">
        <strong className="cut">{display_name}</strong>
        {visibility === 'private' && <span className="badge">private</span>}
      </span>
      <span className="line quiet small">
        <span className="cut">{description || namespace}</span>
        <Ago at={updated_at} />
      </span>
    </Link>
  );
}

/** Knowledge bases: the list, and one of them with its sources, its jobs and a query beside it. */
export function Knowledge() {
  const search = route.useSearch();
  const { base: current, find = '' } = search;
  const navigate = useNavigate({ from: '/knowledge' });
  const { data: session } = useQuery(sessionQuery);
  const list = useInfiniteQuery(basesQuery);
  const [isNew, setNew] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const all = list.data?.pages.flatMap(({ knowledge_bases }) => knowledge_bases) ?? [];
  const bases = all.filter(({ namespace, display_name, description }) =>
    `${namespace} ${display_name} ${description}`.toLowerCase().includes(find.toLowerCase()),
  );
  const mayChange = session != null && hasScope(session, 'full');
  const select = (base: string) =>
    void navigate({ search: (old) => ({ ...(old.find !== undefined && { find: old.find }), base }), replace: true });
  const close = () => void navigate({ search: find === '' ? {} : { find }, replace: true });
  useListKeys({ ids: bases.map(({ namespace }) => namespace), ...{ current, select, close, field } });
  const create = mayChange && (
    <button type="button" onClick={() => setNew(true)}>
      New
    </button>
  );
  return (
    <>
      <ListView
        name="Knowledge"
        label={['Knowledge bases', 'Knowledge base']}
        className="knowledge"
        count={list.data?.pages[0] && numberText(list.data.pages[0].count)}
        actions={create}
        filters={
          <FindField
            ref={field}
            label="Knowledge base"
            placeholder="Find a knowledge base"
            value={find}
            change={(to) => void navigate({ search: (old) => ({ ...old, find: to }), replace: true })}
          />
        }
        list={list}
        rows={bases}
        idOf={({ namespace }) => namespace}
        row={(base, isCurrent) => <BaseRow base={base} isCurrent={isCurrent} />}
        empty={
          all.length === 0 ? (
            <div className="empty">
              <h2>No knowledge bases yet</h2>
              <p className="quiet">
                A knowledge base is a set of documents that agents search by meaning and by words.
                {!mayChange && ' Creating one needs the scope full.'}
              </p>
              {create}
            </div>
          ) : (
            !list.hasNextPage && (
              <NoMatch
                all={
                  <Link to="/knowledge" search={{}}>
                    Show all
                  </Link>
                }
              />
            )
          )
        }
        current={current}
        close={close}
        hint="Select a knowledge base to see its sources."
      >
        {current && <BaseDetail key={current} namespace={current} search={search} mayChange={mayChange} />}
      </ListView>
      {isNew && (
        <NewBase
          close={() => setNew(false)}
          made={(base) => {
            setNew(false);
            select(base);
          }}
        />
      )}
    </>
  );
}
