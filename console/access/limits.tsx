import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { TenantLimitsResponse } from '../../contracts/api/tenants/tenants.js';
import { call } from '../api/call.js';
import { limitsQuery } from '../api/usage.js';
import { CopyCurl } from '../parts/copy.js';
import { Failed, Loading, Problem } from '../parts/states.js';
import { Quotas } from '../usage/quotas.js';
import { Prices } from './prices.js';
import { changedLimits, KEYED_NAMES, LIMIT_NAMES, limitsDraft } from './search.js';

const COLUMNS: Record<(typeof LIMIT_NAMES)[number], string> = {
  messages_per_day: 'Messages a day',
  tokens_per_day: 'Tokens a day',
  cost_usd_per_month: 'US $ a month',
};
const ROWS = [
  ['', 'The whole tenant'],
  ...KEYED_NAMES.map((kind) => [`${kind}.`, `Each ${kind.slice(4).replace('_', ' ')}`] as const),
] as const;

function LimitsForm({ limits }: Pick<TenantLimitsResponse, 'limits'>) {
  const client = useQueryClient();
  const before = limitsDraft(limits);
  const [draft, setDraft] = useState(before);
  const change = changedLimits(before, draft);
  const save = useMutation({
    mutationFn: () => call('/tenants/set_limits', change),
    onSuccess: (answer) => client.setQueryData(limitsQuery.queryKey, answer),
  });
  const isChanged = Object.keys(change).length > 0;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <table className="table limits">
        <thead>
          <tr>
            <th scope="col">Limit for</th>
            {LIMIT_NAMES.map((name) => (
              <th scope="col" key={name}>
                {COLUMNS[name]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {ROWS.map(([prefix, label]) => (
            <tr key={prefix}>
              <th scope="row">{label}</th>
              {LIMIT_NAMES.map((name) => (
                <td key={name} data-name={COLUMNS[name]}>
                  <input
                    type="number"
                    min={0}
                    step={name === 'cost_usd_per_month' ? 'any' : 1}
                    placeholder="no limit"
                    aria-label={`${label}: ${COLUMNS[name]}`}
                    value={draft[`${prefix}${name}`] ?? ''}
                    onChange={({ target }) => setDraft({ ...draft, [`${prefix}${name}`]: target.value })}
                  />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <Problem error={save.error} />
      <div className="actions">
        <button type="submit" className="yes" disabled={!isChanged || save.isPending}>
          Save the limits
        </button>
        {isChanged && (
          <button type="button" onClick={() => setDraft(before)}>
            Undo
          </button>
        )}
        <CopyCurl path="/tenants/set_limits" body={change} />
        {save.isSuccess && !isChanged && (
          <span className="quiet" role="status">
            Saved. They are in force within about a second.
          </span>
        )}
      </div>
    </form>
  );
}

/** How much the tenant and those in it may use, and what models cost. */
export function Limits() {
  const { data, error, refetch } = useQuery(limitsQuery);
  if (error && !data) return <Failed error={error} retry={() => void refetch()} />;
  if (!data) return <Loading rows={3} />;
  return (
    <>
      <Quotas />
      <section className="card">
        <h2>Limits</h2>
        <p className="quiet">
          Beyond a limit, new messages are refused with QUOTA_EXCEEDED until the day or month ends (UTC). Leave a field
          empty for no limit.
        </p>
        <LimitsForm key={JSON.stringify(data.limits)} limits={data.limits} />
      </section>
      <section className="card">
        <h2>Prices</h2>
        <p className="quiet">
          US dollars for a million tokens, by the model that agents report. A price counts for what is used from now on.
        </p>
        <Prices />
      </section>
    </>
  );
}
