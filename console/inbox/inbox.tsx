import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { RequestRecord } from '../../contracts/api/policies/requests.js';
import { requestsQuery } from '../api/requests.js';
import { useKeys } from '../parts/keys.js';
import { useMedia, WIDE } from '../parts/media.js';
import { Split } from '../parts/split.js';
import { Failed, Loading } from '../parts/states.js';
import type { AnswerKeys } from './answer-form.js';
import { BulkBar } from './bulk.js';
import { type Answer, type Decision, decisions, useDecisions } from './decisions.js';
import { Empty } from './empty.js';
import { Failures } from './failures.js';
import { FilterBar } from './filter-bar.js';
import { filtersOf } from './filters.js';
import { RequestDetail } from './request-detail.js';
import { RequestRow } from './request-row.js';

const route = getRouteApi('/inbox');
const ROW_PX = 86;

/** The rows of the list, and those that were decided here since, each at its place. */
function withDecided(rows: RequestRecord[], made: ReadonlyMap<string, Decision>, isOpenBox: boolean): RequestRecord[] {
  if (!isOpenBox) return rows;
  const known = new Set(rows.map(({ request_id }) => request_id));
  const gone = [...made.values()].map(({ request }) => request).filter(({ request_id }) => !known.has(request_id));
  if (gone.length === 0) return rows;
  const at = ({ input_request }: RequestRecord) => input_request.requested_at;
  return [...rows, ...gone].sort((one, other) => at(one).localeCompare(at(other)));
}

/** Requests to people: the list, and one of them beside it. */
export function Inbox() {
  const search = route.useSearch();
  const navigate = useNavigate({ from: '/inbox' });
  const filters = filtersOf(search);
  const list = useInfiniteQuery(requestsQuery(filters));
  const made = useDecisions();
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set());
  const answer = useRef<AnswerKeys>(null);
  const scroller = useRef<HTMLDivElement>(null);

  const isSorted = (search.sort ?? 'oldest') === 'oldest';
  const rows = useMemo(() => {
    const loaded = list.data?.pages.flatMap((page) => page.requests) ?? [];
    return withDecided(loaded, made, filters.state === 'open' && isSorted);
  }, [list.data, made, filters.state, isSorted]);
  const count = list.data?.pages[0]?.count;
  // On a wide screen the first request is shown at once, and the address follows.
  const isWide = useMedia(WIDE);
  const first = isWide ? rows[0]?.request_id : undefined;
  const current = search.request ?? first;
  const index = rows.findIndex(({ request_id }) => request_id === current);

  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 8,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  useEffect(() => {
    if (last >= rows.length - 10 && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [last, rows.length, hasNextPage, isFetchingNextPage, fetchNextPage]);

  const show = (at: number) => {
    const row = rows[at];
    if (!row) return;
    virtual.scrollToIndex(at);
    void navigate({ search: (old) => ({ ...old, request: row.request_id }), replace: true });
  };
  useEffect(() => {
    if (search.request !== undefined || first === undefined) return;
    const afterPaint = setTimeout(() => {
      // Somebody may be on the way to a view that is still being loaded.
      if (!location.pathname.endsWith('/inbox')) return;
      void navigate({ search: (old) => ({ request: first, ...old }), replace: true });
    });
    return () => clearTimeout(afterPaint);
  }, [search.request, first, navigate]);

  const isOpen = ({ request_id, state }: RequestRecord) => state === 'open' && !made.has(request_id);
  const nextOpen = (from: number) => {
    const after = rows.findIndex((row, at) => at > from && isOpen(row));
    return after >= 0 ? after : rows.findIndex((row, at) => at < from && isOpen(row));
  };
  const decide = (request: RequestRecord, given: Answer) => {
    decisions.decide(request, given);
    const next = nextOpen(rows.findIndex(({ request_id }) => request_id === request.request_id));
    if (isWide) {
      if (next >= 0) show(next);
    } else void navigate({ search: ({ request: _, ...old }) => old, replace: true });
  };
  const undo = () => {
    const back = decisions.undo();
    if (back) void navigate({ search: (old) => ({ ...old, request: back.request_id }), replace: true });
  };
  const check = (id: string) =>
    setChecked((old) => new Set(old.has(id) ? [...old].filter((one) => one !== id) : [...old, id]));
  const mayCheck = (row: RequestRecord) => isOpen(row) && row.may_answer && row.input_request.kind !== 'form';
  const selected = rows.filter((row) => checked.has(row.request_id) && mayCheck(row));

  const row = rows[index];
  const close = () => void navigate({ search: ({ request: _, ...old }) => old, replace: true });
  useKeys({
    j: () => show(index + 1),
    arrowdown: () => show(index + 1),
    k: () => show(Math.max(0, index - 1)),
    arrowup: () => show(Math.max(0, index - 1)),
    a: () => answer.current?.yes(),
    r: () => answer.current?.no(),
    e: () => answer.current?.edit(),
    c: () => answer.current?.comment(),
    u: undo,
    x: () => row && mayCheck(row) && check(row.request_id),
    o: () =>
      row?.message_id &&
      void navigate({ to: '/messages/$messageId', params: { messageId: row.message_id }, search: {} }),
    escape: () => (checked.size > 0 ? setChecked(new Set()) : close()),
  });

  return (
    <>
      <Split
        name="Inbox"
        label={['Requests', 'Request']}
        className="inbox"
        isOpen={current !== undefined}
        close={close}
        list={
          <>
            <FilterBar search={search} count={count} isFetching={list.isFetching} />
            {selected.length > 0 && <BulkBar requests={selected} done={() => setChecked(new Set())} />}
            <Failures />
            <div className="scroller" ref={scroller}>
              {list.isPending && <Loading />}
              {list.error && !list.data && <Failed error={list.error} retry={() => void list.refetch()} />}
              {list.data && rows.length === 0 && !hasNextPage && <Empty search={search} />}
              <ul style={{ height: virtual.getTotalSize() }}>
                {items.map(({ index: at, key, start }) => {
                  const request = rows[at];
                  if (!request) return null;
                  return (
                    <li
                      key={key}
                      style={{ transform: `translateY(${start}px)` }}
                      aria-setsize={count ?? -1}
                      aria-posinset={at + 1}
                    >
                      <RequestRow
                        request={request}
                        decision={made.get(request.request_id)}
                        isCurrent={request.request_id === current}
                        isChecked={checked.has(request.request_id)}
                        check={mayCheck(request) ? () => check(request.request_id) : undefined}
                      />
                    </li>
                  );
                })}
              </ul>
            </div>
          </>
        }
      >
        {current ? (
          <RequestDetail requestId={current} known={row} decision={made.get(current)} decide={decide} keys={answer} />
        ) : (
          <p className="empty quiet">Select a request to see what it asks.</p>
        )}
      </Split>
      <Undo made={made} undo={undo} />
    </>
  );
}

/** What can still be undone, said aloud too. */
function Undo({ made, undo }: { made: ReadonlyMap<string, Decision>; undo: () => void }) {
  const waiting = [...made.values()].filter(({ state }) => state === 'waiting');
  const newest = waiting.at(-1);
  return (
    <div className="toasts" role="status">
      {newest && (
        <div className="toast" key={newest.request.request_id}>
          <span className="cut">
            {waiting.length > 1
              ? `${waiting.length} decisions are about to be sent`
              : `“${newest.request.input_request.title}”: ${newest.answer.resolution}`}
          </span>
          <button type="button" onClick={undo}>
            Undo <kbd>U</kbd>
          </button>
        </div>
      )}
    </div>
  );
}
