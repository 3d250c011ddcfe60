import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { AlertRule } from '../../contracts/api/alerts.js';
import type { Delivery } from '../../contracts/api/deliveries.js';
import { deliveriesQuery, rulesQuery } from '../api/alerts.js';
import { Choice, TypedFilter, withFilters } from '../list/choice.js';
import { useListKeys } from '../list/list-keys.js';
import { CopyCurl } from '../parts/copy.js';
import { Split } from '../parts/split.js';
import { Badge, Failed, Loading } from '../parts/states.js';
import { Ago } from '../parts/time.js';
import { DeliveryDetail } from './delivery-detail.js';
import { Heading } from './heading.js';
import { ResendBar } from './resend.js';
import { type AlertsSearch, answerText, deliveriesBody } from './search.js';

const STATUS_LABELS = [
  ['failed', 'Failed'],
  ['pending', 'Waiting'],
  ['delivered', 'Delivered'],
  ['dropped', 'Dropped'],
  ['all', 'All'],
] as const;
const TIME_LABELS = [
  ['', 'All seven days'],
  ['24h', 'Last day'],
  ['1h', 'Last hour'],
] as const;

function DeliveryRow(props: {
  delivery: Delivery;
  ruleName: string | undefined;
  isCurrent: boolean;
  isChecked: boolean;
  check: () => void;
}) {
  const { delivery, ruleName, isCurrent, isChecked, check } = props;
  const { delivery_id, event_type, url, status, attempts, created_at, rule_id } = delivery;
  const last = attempts.at(-1);
  return (
    <>
      <label className="check">
        <input type="checkbox" checked={isChecked} disabled={status === 'pending'} onChange={check} />
        <span className="hidden">
          Select {event_type} to {url}
        </span>
      </label>
      <Link
        from="/alerts"
        to="/alerts"
        search={(old) => ({ ...old, delivery: delivery_id })}
        replace
        className={`entry${isCurrent ? ' current' : ''}`}
        aria-current={isCurrent || undefined}
      >
        <span className="line">
          <strong className="cut">{event_type}</strong>
          <Badge state={status} label={status === 'pending' ? 'waiting' : status} />
        </span>
        <span className="line quiet small">
          <span className="cut">
            {status !== 'delivered' && `${answerText(last)} · `}
            {ruleName ?? (rule_id === null ? 'push notification' : 'a deleted rule')} · {url}
          </span>
          <Ago at={last?.at ?? created_at} short />
        </span>
      </Link>
    </>
  );
}

type Change = (set: Parameters<typeof withFilters<AlertsSearch>>[1]) => void;

function Filters(props: { search: AlertsSearch; rules: readonly AlertRule[]; change: Change }) {
  const { search, rules, change } = props;
  return (
    <div className="choices">
      <Choice
        label="Status"
        value={search.status ?? 'failed'}
        options={STATUS_LABELS}
        onChange={(status) => change({ status: status === 'failed' ? '' : status })}
      />
      <Choice
        label="Time"
        value={TIME_LABELS.find(([time]) => time === search.time)?.[0] ?? ''}
        options={TIME_LABELS}
        onChange={(time) => change({ time })}
      />
      <Choice
        label="Rule"
        value={search.rule ?? ''}
        options={[['', 'Any rule'], ...rules.map(({ rule_id, name }) => [rule_id, name] as const)]}
        onChange={(rule) => change({ rule })}
      />
      <TypedFilter
        id="delivery-event"
        label="Any event"
        value={search.event_type}
        onChange={(event_type) => change({ event_type })}
      />
    </div>
  );
}

function NoDeliveries({ search }: { search: AlertsSearch }) {
  const isFiltered = search.rule !== undefined || search.event_type !== undefined || search.time !== undefined;
  const isFailed = (search.status ?? 'failed') === 'failed';
  return (
    <div className="empty">
      <h2>{isFailed && !isFiltered ? 'No delivery has failed' : 'Nothing matches'}</h2>
      <p className="quiet">
        Deliveries are kept for seven days. {isFailed ? 'A failed one can be sent again from here.' : ''}
      </p>
      <Link to="/alerts" search={{ status: 'all' }}>
        Show all deliveries
      </Link>
    </div>
  );
}

/** What was delivered, the failed first, and one delivery beside the list. */
export function Deliveries({ search }: { search: AlertsSearch }) {
  const navigate = useNavigate({ from: '/alerts' });
  const list = useInfiniteQuery(deliveriesQuery(search));
  const { data: rules = [] } = useQuery(rulesQuery);
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set());
  // Newer deliveries move the pages: a delivery may be on two of them.
  const rows = [
    ...new Map(list.data?.pages.flatMap(({ deliveries }) => deliveries).map((one) => [one.delivery_id, one])).values(),
  ];
  const current = search.delivery;
  const selected = rows.filter(({ delivery_id, status }) => checked.has(delivery_id) && status !== 'pending');
  const all = rows.filter(({ status }) => status !== 'pending');
  const nameOf = (ruleId: string | null) => rules.find(({ rule_id }) => rule_id === ruleId)?.name;

  const change: Change = (set) => {
    setChecked(new Set());
    void navigate({ search: ({ delivery: _, ...old }) => withFilters<AlertsSearch>(old, set) });
  };
  const show = (delivery: string) => void navigate({ search: (old) => ({ ...old, delivery }), replace: true });
  const close = () => void navigate({ search: ({ delivery: _, ...old }) => old, replace: true });
  const check = (id: string) =>
    setChecked((old) => new Set(old.has(id) ? [...old].filter((one) => one !== id) : [...old, id]));
  const ids = rows.map(({ delivery_id }) => delivery_id);
  useListKeys({
    ids,
    current,
    select: show,
    close: () => (checked.size > 0 ? setChecked(new Set()) : close()),
    more: {
      x: () => current !== undefined && all.some(({ delivery_id }) => delivery_id === current) && check(current),
      '/': () => document.getElementById('delivery-event')?.focus(),
    },
  });

  return (
    <Split
      name="Alerts"
      label={['Deliveries', 'Delivery']}
      className="alerts"
      isOpen={current !== undefined}
      close={close}
      list={
        <>
          <header className="filters">
            <Heading tab="deliveries" count={list.data?.pages[0]?.count} />
            <Filters search={search} rules={rules} change={change} />
          </header>
          {selected.length > 0 ? (
            <ResendBar deliveries={selected} clear={() => setChecked(new Set())} />
          ) : (
            all.length > 1 && (
              <button
                type="button"
                className="link select-all"
                onClick={() => setChecked(new Set(all.map(({ delivery_id }) => delivery_id)))}
              >
                Select the {all.length} that are loaded
              </button>
            )
          )}
          {list.isPending && <Loading />}
          {list.error && !list.data && <Failed error={list.error} retry={() => void list.refetch()} />}
          {list.data && rows.length === 0 && <NoDeliveries search={search} />}
          {rows.length > 0 && (
            <ul className="entries picks">
              {rows.map((delivery) => (
                <li key={delivery.delivery_id} id={delivery.delivery_id}>
                  <DeliveryRow
                    delivery={delivery}
                    ruleName={nameOf(delivery.rule_id)}
                    isCurrent={delivery.delivery_id === current}
                    isChecked={checked.has(delivery.delivery_id)}
                    check={() => check(delivery.delivery_id)}
                  />
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
          )}
          <p className="list-foot small">
            <CopyCurl path="/webhooks/get_deliveries" body={deliveriesBody(search, Date.now())} />
          </p>
        </>
      }
    >
      {current !== undefined ? (
        <DeliveryDetail key={current} deliveryId={current} nameOf={nameOf} />
      ) : (
        <div className="empty">
          <p className="quiet">Select a delivery to see its attempts.</p>
        </div>
      )}
    </Split>
  );
}
