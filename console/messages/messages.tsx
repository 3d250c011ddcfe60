import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { MessageRecord } from '../../contracts/api/messages.js';
import { isRepeatable, isTerminal } from '../../contracts/message-states.js';
import { follow, MESSAGE_TYPES } from '../api/live.js';
import { messagesQuery } from '../api/messages.js';
import { hasScope, sessionQuery } from '../api/session.js';
import type { AnswerKeys } from '../inbox/answer-form.js';
import { answerKeys, MessageView } from '../message/message.js';
import { Icon } from '../parts/icon.js';
import { useKeys } from '../parts/keys.js';
import { useMedia, WIDE } from '../parts/media.js';
import { Failed, Loading } from '../parts/states.js';
import { BulkBar } from './bulk.js';
import { Empty } from './empty.js';
import { FilterBar } from './filter-bar.js';
import { ErrorGroups, StuckGroups } from './groups.js';
import { MessageRow } from './message-row.js';

const route = getRouteApi('/messages');
/** A row of one line, and one of two where there is no room for that. */
const [WIDE_PX, NARROW_PX] = [42, 64];
/** Lists of at most so many pages are read again as a whole when something happens. */
const PAGES_MAX = 5;
/** Pages that a search for words reads before it asks: each looks through 2,000 messages and may find none. */
const SEARCH_PAGES = 10;

/** Keeps the list, its groups and the message beside it current. @returns whether newer messages have come than a long list shows */
function useLiveMessages(shown: string | undefined, pages: number): [isBehind: boolean, caughtUp: () => void] {
  const client = useQueryClient();
  const [isBehind, setBehind] = useState(false);
  const latest = useRef({ shown, pages });
  useEffect(() => {
    latest.current = { shown, pages };
  });
  useEffect(
    () =>
      follow({ types: MESSAGE_TYPES }, () => {
        const { shown: id, pages: count } = latest.current;
        if (count <= PAGES_MAX) void client.invalidateQueries({ queryKey: ['messages'] });
        else setBehind(true);
        void client.invalidateQueries({ queryKey: ['groups'] });
        if (id === undefined) return;
        void client.invalidateQueries({ queryKey: ['message', id] });
        void client.invalidateQueries({ queryKey: ['events', id] });
      }),
    [client],
  );
  return [isBehind, () => setBehind(false)];
}

/** All messages: the list, and one of them beside it. */
export function Messages() {
  const search = route.useSearch();
  const navigate = useNavigate({ from: '/messages' });
  const client = useQueryClient();
  const { data: session } = useQuery(sessionQuery);
  const list = useInfiniteQuery(messagesQuery(search));
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set());
  const answer = useRef<AnswerKeys>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const words = useRef<HTMLInputElement>(null);
  const current = search.message;
  const isWide = useMedia(WIDE);
  const rowPx = isWide && current === undefined ? WIDE_PX : NARROW_PX;

  const pages = list.data?.pages;
  const rows = useMemo(() => pages?.flatMap(({ messages }) => messages) ?? [], [pages]);
  const [isBehind, caughtUp] = useLiveMessages(current, pages?.length ?? 0);
  const counted = search.text === undefined ? pages?.[0] : pages?.at(-1);

  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: 10,
  });
  useEffect(() => {
    virtual.options.estimateSize = () => rowPx;
    virtual.measure();
  }, [rowPx, virtual]);
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  const [searchPages, setSearchPages] = useState(SEARCH_PAGES);
  const isSearchLong = search.text !== undefined && (pages?.length ?? 0) >= searchPages;
  useEffect(() => {
    if (last >= rows.length - 10 && hasNextPage && !isFetchingNextPage && !isSearchLong) void fetchNextPage();
  }, [last, rows.length, hasNextPage, isFetchingNextPage, fetchNextPage, isSearchLong]);

  const filters = JSON.stringify({ ...search, message: undefined });
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was selected belongs to the list
  useEffect(() => {
    setChecked(new Set());
    setSearchPages(SEARCH_PAGES);
    scroller.current?.scrollTo(0, 0);
  }, [filters]);

  const index = rows.findIndex(({ message_id }) => message_id === current);
  const show = (at: number) => {
    const row = rows[at];
    if (!row) return;
    virtual.scrollToIndex(at);
    void navigate({ search: (old) => ({ ...old, message: row.message_id }), replace: true });
  };
  const close = () => void navigate({ search: ({ message: _, ...old }) => old, replace: true });
  const mayRetry = useCallback(
    ({ sent_by }: MessageRecord) =>
      session != null && (hasScope(session, 'admin') || sent_by.id === session.principal.id),
    [session],
  );
  const mayCheck = useCallback(
    (row: MessageRecord) => !isTerminal(row.state) || (isRepeatable(row.state) && mayRetry(row)),
    [mayRetry],
  );
  const check = useCallback(
    (id: string) => setChecked((old) => new Set(old.has(id) ? [...old].filter((one) => one !== id) : [...old, id])),
    [],
  );
  const selected = useMemo(() => rows.filter(({ message_id }) => checked.has(message_id)), [rows, checked]);
  const all = useMemo(() => rows.filter(mayCheck), [rows, mayCheck]);
  const row = rows[index];

  useKeys({
    ...answerKeys(answer),
    j: () => show(index + 1),
    arrowdown: () => show(index + 1),
    k: () => show(Math.max(0, index - 1)),
    arrowup: () => show(Math.max(0, index - 1)),
    x: () => row && mayCheck(row) && check(row.message_id),
    o: () => current && void navigate({ to: '/messages/$messageId', params: { messageId: current }, search: {} }),
    '/': () => words.current?.focus(),
    escape: () => (checked.size > 0 ? setChecked(new Set()) : close()),
  });
  const refresh = () => {
    caughtUp();
    scroller.current?.scrollTo(0, 0);
    void client.resetQueries({ queryKey: ['messages'] });
  };

  return (
    <div className={`messages${current === undefined ? '' : ' has-detail'}`}>
      <section className="list" aria-label="Messages">
        <FilterBar search={search} counted={counted} isFetching={list.isFetching} words={words} />
        {search.view === 'stuck' && <StuckGroups search={search} />}
        {search.state === 'failed' && <ErrorGroups search={search} />}
        {selected.length > 0 ? (
          <BulkBar messages={selected} mayRetry={mayRetry} clear={() => setChecked(new Set())} />
        ) : (
          all.length > 0 &&
          (search.view === 'stuck' || search.state !== undefined) && (
            <button
              type="button"
              className="link select-all"
              onClick={() => setChecked(new Set(all.map(({ message_id }) => message_id)))}
            >
              Select the {all.length} that are loaded
            </button>
          )
        )}
        {isBehind && (
          <button type="button" className="newer" onClick={refresh}>
            Newer messages have come. Show them.
          </button>
        )}
        <div className="scroller" ref={scroller}>
          {list.isPending && <Loading />}
          {list.error && !list.data && <Failed error={list.error} retry={() => void list.refetch()} />}
          {list.data && rows.length === 0 && !hasNextPage && <Empty search={search} />}
          <ul style={{ height: virtual.getTotalSize() }}>
            {items.map(({ index: at, key, start }) => {
              const message = rows[at];
              if (!message) return null;
              return (
                <li
                  key={key}
                  style={{ transform: `translateY(${start}px)`, height: rowPx }}
                  aria-setsize={counted?.count_estimated ? -1 : (counted?.count ?? -1)}
                  aria-posinset={at + 1}
                >
                  <MessageRow
                    message={message}
                    isCurrent={message.message_id === current}
                    isChecked={checked.has(message.message_id)}
                    mayCheck={mayCheck(message)}
                    check={check}
                  />
                </li>
              );
            })}
          </ul>
          {list.data && hasNextPage && (
            <p className="more quiet small" role="status">
              {isSearchLong ? 'The newest messages were looked through.' : 'Looking for more…'}{' '}
              {isSearchLong && (
                <button
                  type="button"
                  className="link"
                  onClick={() => setSearchPages((pages?.length ?? 0) + SEARCH_PAGES)}
                >
                  Look further back
                </button>
              )}
            </p>
          )}
        </div>
      </section>
      {current !== undefined && (
        <section className="beside peek" aria-label="Message">
          <MessageView
            key={current}
            messageId={current}
            answer={answer}
            show={(message) => void navigate({ search: (old) => ({ ...old, message }), replace: true })}
            above={
              <div className="line peek-bar">
                <button type="button" className="link" onClick={close}>
                  <Icon name="cross" /> Close
                </button>
                <Link to="/messages/$messageId" params={{ messageId: current }} search={{}}>
                  Open <kbd>O</kbd>
                </Link>
              </div>
            }
          />
        </section>
      )}
    </div>
  );
}
