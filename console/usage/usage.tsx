import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { UsageSums } from '../../contracts/api/usage.js';
import { hasScope, sessionQuery } from '../api/session.js';
import { daysQuery, usageQuery } from '../api/usage.js';
import { Chart } from '../overview/chart.js';
import { CopyCurl } from '../parts/copy.js';
import { Fact } from '../parts/fact.js';
import { Failed, Loading } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Quotas } from './quotas.js';
import {
  costText,
  daysOf,
  type Group,
  type Measure,
  measureText,
  type Range,
  shortCount,
  usageBody,
} from './search.js';
import { UsageTable } from './usage-table.js';

const route = getRouteApi('/usage');

const RANGE_LABELS: Record<Range, string> = { '24h': '24 hours', '7d': '7 days', '30d': '30 days' };
const GROUP_LABELS: Record<Group, string> = {
  ...{ day: 'Day', agent_type: 'Agent type', model: 'Model' },
  ...{ user: 'User', credential: 'Credential' },
};
const MEASURE_LABELS: Record<Measure, string> = { cost_usd: 'Cost', total_tokens: 'Tokens', messages: 'Messages' };

/** Links to the same page with another value of one member, in a row. */
function Tabs<Value extends string>(props: {
  name: 'range' | 'by' | 'measure';
  label: string;
  labels: Record<Value, string>;
  value: Value;
}) {
  const { name, label, labels, value } = props;
  return (
    <nav aria-label={label} className="segments">
      {(Object.entries(labels) as [Value, string][]).map(([each, text]) => (
        <Link
          key={each}
          to="/usage"
          search={(old) => ({ ...old, [name]: each })}
          replace
          aria-current={each === value ? 'page' : undefined}
          activeOptions={{ exact: true }}
        >
          {text}
        </Link>
      ))}
    </nav>
  );
}

function Totals({ totals, range }: { totals: UsageSums; range: Range }) {
  const { messages, tool_calls, input_tokens, output_tokens, total_tokens, cost_usd } = totals;
  const perMessage = messages > 0 && cost_usd > 0 && `${costText(cost_usd / messages)} for a message`;
  return (
    <dl className="facts tiles">
      <Fact name={`Cost, ${RANGE_LABELS[range]}`}>
        {costText(cost_usd)} <span className="quiet">{perMessage || 'by the prices of your models'}</span>
      </Fact>
      <Fact name="Messages">
        {numberText(messages)} <span className="quiet">accepted</span>
      </Fact>
      <Fact name="Tokens">
        {shortCount(total_tokens)}{' '}
        <span className="quiet">
          {shortCount(input_tokens)} in, {shortCount(output_tokens)} out
        </span>
      </Fact>
      <Fact name="Tool calls">
        {numberText(tool_calls)} <span className="quiet">of agents</span>
      </Fact>
    </dl>
  );
}

const dayText = (day: string) =>
  new Date(`${day}T00:00:00Z`).toLocaleDateString(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });

function DaysChart({ range, measure, total }: { range: Range; measure: Measure; total: number }) {
  const { data } = useQuery(daysQuery(range));
  if (!data) return null;
  const days = daysOf(range, data, measure, Date.now());
  const most = Math.max(...days.map(({ value }) => value));
  return (
    <Chart
      title={`${MEASURE_LABELS[measure]} by day`}
      figure={
        <>
          {measureText(measure, total / days.length)} <small className="quiet">a day on average</small>
        </>
      }
      note={most > 0 && `${measureText(measure, most)} on the busiest day`}
      times={days.map(({ day }) => day)}
      timeText={dayText}
      last="today (UTC)"
      bars={days.map(({ value }) => value)}
      words={(at) => measureText(measure, days[at]?.value ?? 0)}
    />
  );
}

/** What the tenant costs, who used it, and how much is left. */
export function Usage() {
  const search = route.useSearch();
  const { range = '7d', by = 'day', measure = 'cost_usd' } = search;
  const { data: session } = useQuery(sessionQuery);
  const list = useInfiniteQuery(usageQuery(search));
  const totals = list.data?.pages[0]?.totals;
  const rows = list.data?.pages.flatMap((page) => page.rows) ?? [];
  const isFull = session != null && hasScope(session, 'full');
  if (list.error && !totals) return <Failed error={list.error} retry={() => void list.refetch()} />;
  return (
    <div className="overview usage">
      <div className="line page-head">
        <h1>Usage</h1>
        <Tabs name="range" label="Time" labels={RANGE_LABELS} value={range} />
      </div>
      {!totals && <Loading rows={3} />}
      {totals && (
        <>
          <Totals totals={totals} range={range} />
          <div className="charts">
            <DaysChart range={range} measure={measure} total={totals[measure]} />
          </div>
          {isFull && (
            <Quotas>
              <Link to="/access" search={{ tab: 'limits' }}>
                Change
              </Link>
            </Quotas>
          )}
          <section aria-label="Rows">
            <div className="line page-head">
              <Tabs name="by" label="Rows by" labels={GROUP_LABELS} value={by} />
              <Tabs name="measure" label="Shown and sorted by" labels={MEASURE_LABELS} value={measure} />
            </div>
            <UsageTable rows={rows} totals={totals} by={by} measure={measure} name={GROUP_LABELS[by]} isFull={isFull} />
            <p className="line list-end">
              {list.hasNextPage && (
                <button type="button" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
                  Show more
                </button>
              )}
              <CopyCurl path="/telemetry/get_usage" body={usageBody(search)} />
            </p>
          </section>
        </>
      )}
    </div>
  );
}
