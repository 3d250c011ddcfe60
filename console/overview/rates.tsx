import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { call } from '../api/call.js';
import { tookText } from '../messages/words.js';
import { Failed, Loading } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Chart } from './chart.js';

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);

/** The middle one of the values of all hours that had any. */
function middle(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null).sort((one, other) => one - other);
  return known[Math.floor(known.length / 2)] ?? null;
}
const took = (ms: number | null | undefined) => (ms == null ? 'none' : tookText(ms));

/** How much was sent, how much failed and how long it took, in each hour of the last day. */
export function Rates() {
  const { data, error, refetch } = useQuery({
    queryKey: ['rates'],
    queryFn: async () => (await call('/messages/get_rates', {})).hours,
    refetchInterval: 60_000,
  });
  if (error && !data) return <Failed error={error} retry={() => void refetch()} />;
  if (!data) return <Loading rows={1} />;
  const hours = data.map(({ hour }) => hour);
  const [accepted, failed] = [data.map((hour) => hour.accepted), data.map((hour) => hour.failed)];
  const [p50, p95] = [data.map(({ latency_ms }) => latency_ms.p50), data.map(({ latency_ms }) => latency_ms.p95)];
  const [total, bad] = [sum(accepted), sum(failed)];
  const share = total > 0 ? (bad / total) * 100 : 0;
  return (
    <section className="charts" aria-label="The last day">
      <Chart
        title="Messages"
        figure={
          <Link to="/messages" search={{ time: '24h' }}>
            {numberText(total)}
          </Link>
        }
        note={`${numberText(Math.max(...accepted))} in the busiest hour`}
        times={hours}
        bars={accepted}
        words={(at) => `${accepted[at]} accepted`}
      />
      <Chart
        title="Failed"
        figure={
          <>
            <Link to="/messages" search={{ state: 'failed', time: '24h' }}>
              {numberText(bad)}
            </Link>{' '}
            <small className="quiet">{share > 0 && share < 0.1 ? '< 0.1' : share.toFixed(share < 10 ? 1 : 0)} %</small>
          </>
        }
        note={bad === 0 ? 'none in any hour' : `${numberText(Math.max(...failed))} in the worst hour`}
        times={hours}
        bars={failed}
        tone="bad"
        words={(at) => `${failed[at]} failed of ${accepted[at]}`}
      />
      <Chart
        title="Time to answer"
        figure={
          <>
            {took(middle(p50))} <small className="quiet">p95 {took(middle(p95))}</small>
          </>
        }
        note={
          <>
            <span className="key p50" /> p50 <span className="key p95" /> p95
          </>
        }
        times={hours}
        lines={[
          { values: p95, className: 'p95' },
          { values: p50, className: 'p50' },
        ]}
        words={(at) => `p50 ${took(p50[at])}, p95 ${took(p95[at])}`}
      />
    </section>
  );
}
