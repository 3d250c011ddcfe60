import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import type { BacktestResponse, BacktestSample } from '../../contracts/api/policies/backtest.js';
import type { PolicyDecision } from '../../contracts/api/policies/policies.js';
import { ApiError, call } from '../api/call.js';
import { CopyCurl } from '../parts/copy.js';
import { Fact } from '../parts/fact.js';
import { Loading } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import type { PolicyBody } from './draft.js';
import { DECISIONS } from './words.js';

/** Calls for which nothing was left of the policy's bound. */
const OVER = { label: 'Next policy', tone: '' };

/** Leads to what was decided about. */
function SampleLink({ sample, children }: { sample: BacktestSample; children: ReactNode }) {
  const { message_id, plan_id, session_id } = sample;
  if (message_id)
    return (
      <Link to="/messages/$messageId" params={{ messageId: message_id }} className="cut">
        {children}
      </Link>
    );
  if (plan_id)
    return (
      <Link to="/plans" search={{ plan: plan_id }} className="cut">
        {children}
      </Link>
    );
  return (
    <Link to="/sessions" search={{ session: session_id }} className="cut">
      {children}
    </Link>
  );
}

function Sample({ sample }: { sample: BacktestSample }) {
  const { at, action, decision, request_id, tool, agent_type, arguments: given, over_max_calls } = sample;
  const { label, tone } = over_max_calls ? OVER : DECISIONS[decision];
  const what = `${tool ?? action}${agent_type ? ` · ${agent_type}` : ''}`;
  return (
    <li>
      <span className="line">
        <SampleLink sample={sample}>{what}</SampleLink>
        <span className={`badge ${tone}`}>{label}</span>
      </span>
      <span className="line quiet small">
        {given && <code className="cut">{JSON.stringify(given)}</code>}
        {request_id && (
          <Link to="/inbox" search={{ box: 'all', request: request_id }}>
            Request
          </Link>
        )}
        <Ago at={at} />
      </span>
    </li>
  );
}

function Result({ found }: { found: BacktestResponse }) {
  const { examined, matched, unknown, by_decision, over_max_calls, samples, sampled } = found;
  const decisions = Object.keys(DECISIONS) as PolicyDecision[];
  const counts = decisions.map((decision) => ({ label: DECISIONS[decision].label, count: by_decision[decision] }));
  const decided = [...counts, { label: OVER.label, count: over_max_calls }].filter(({ count }) => count > 0);
  return (
    <>
      <dl className="facts tiles three">
        <Fact name="Looked at">{numberText(examined)}</Fact>
        <Fact name="It applies to">
          {numberText(matched)}{' '}
          <span className="quiet">{decided.map(({ label, count }) => `${label} ${numberText(count)}`).join(', ')}</span>
        </Fact>
        <Fact name="Cannot be told">{numberText(unknown)}</Fact>
      </dl>
      {unknown > 0 && (
        <p className="quiet small">
          The record does not have all that the policy looks at: arguments of tool calls are kept only where a person
          was asked.
        </p>
      )}
      {sampled && <p className="notice">Only the newest part of the 30 days was looked at: there is more than fits.</p>}
      {samples.length > 0 && (
        <ul className="samples">
          {samples.map((sample) => (
            <Sample
              key={`${sample.at} ${sample.message_id ?? sample.plan_id ?? sample.session_id} ${sample.request_id}`}
              sample={sample}
            />
          ))}
        </ul>
      )}
      {matched > samples.length && <p className="quiet small">The newest {samples.length} are shown.</p>}
    </>
  );
}

/**
 * What a policy would have decided about the last 30 days. Nothing follows from it.
 * @param props.isAsked it is asked at once, without a click
 */
export function Backtest({ body, isAsked = false }: { body: PolicyBody; isAsked?: boolean }) {
  const text = JSON.stringify(body);
  /** What was asked last, as JSON. */
  const [asked, setAsked] = useState(isAsked ? text : '');
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['backtest', asked],
    queryFn: () => call('/policies/backtest', { policy: JSON.parse(asked) as PolicyBody }),
    enabled: asked !== '',
    retry: false,
    staleTime: 60_000,
  });
  useEffect(() => {
    if (isAsked) setAsked((now) => now || text);
  }, [isAsked, text]);
  const isOld = asked !== '' && asked !== text;
  return (
    <section className="backtest" aria-label="Backtest">
      <h3>The last 30 days</h3>
      {asked === '' && <p className="quiet">Which messages, calls or plans would this have decided about?</p>}
      {isOld && data && <p className="notice wait">The policy has changed since. Try it again.</p>}
      {isFetching && !data && <Loading rows={2} />}
      {error && (
        <p className="notice bad" role="alert">
          {error.message} {error instanceof ApiError && <code>{error.code}</code>}
        </p>
      )}
      {data && <Result found={data} />}
      <p className="actions">
        <button type="button" disabled={isFetching} onClick={() => (asked === text ? void refetch() : setAsked(text))}>
          {isFetching ? 'Looking…' : 'Try it on the last 30 days'}
        </button>
        <CopyCurl path="/policies/backtest" body={{ policy: body }} />
      </p>
    </section>
  );
}
