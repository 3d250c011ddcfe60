import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { limitsQuery } from '../api/usage.js';
import { NEAR } from '../overview/needs.js';
import { Problem } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Until } from '../parts/time.js';
import { costText } from './search.js';

function Quota(props: {
  name: string;
  used: number;
  limit: number | null;
  text: (value: number) => string;
  at: string;
}) {
  const { name, used, limit, text, at } = props;
  const share = limit === null ? 0 : limit === 0 ? 1 : used / limit;
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {text(used)}{' '}
        <span className="quiet">
          {limit === null ? 'no limit' : `of ${text(limit)}, ${Math.floor(share * 100)} %`} · anew <Until at={at} />
        </span>
        {limit !== null && (
          <meter
            className={share >= 1 ? 'over' : share >= NEAR ? 'near' : undefined}
            aria-label={`${name} used`}
            max={Math.max(limit, 1)}
            value={Math.min(used, Math.max(limit, 1))}
          />
        )}
      </dd>
    </div>
  );
}

/** How much is left of the tenant's quotas. @param props.children beside the heading */
export function Quotas({ children }: { children?: ReactNode }) {
  const { data, error } = useQuery(limitsQuery);
  if (!data) return <Problem error={error} />;
  const { limits, used, day_ends_at, month_ends_at } = data;
  return (
    <section aria-label="Quotas">
      <div className="line section-head">
        <h2>Quotas</h2>
        {children}
      </div>
      <dl className="facts tiles quotas">
        <Quota
          name="Cost this month"
          used={used.cost_usd}
          limit={limits.cost_usd_per_month}
          text={costText}
          at={month_ends_at}
        />
        <Quota
          name="Messages today"
          used={used.messages}
          limit={limits.messages_per_day}
          text={numberText}
          at={day_ends_at}
        />
        <Quota
          name="Tokens today"
          used={used.tokens}
          limit={limits.tokens_per_day}
          text={numberText}
          at={day_ends_at}
        />
      </dl>
    </section>
  );
}
