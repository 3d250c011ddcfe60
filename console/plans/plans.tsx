import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import type { PlanSummary } from '../../contracts/api/plans.js';
import { follow, isShort, PLAN_TYPES } from '../api/live.js';
import type { AnswerKeys } from '../inbox/answer-form.js';
import { FilterChoice } from '../list/choice.js';
import { useListKeys } from '../list/list-keys.js';
import { ListView } from '../list/list-view.js';
import { answerKeys } from '../message/message.js';
import { countText, WITHIN } from '../messages/filters.js';
import { Badge } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import { PlanDetail } from './plan-detail.js';
import { plansQuery } from './queries.js';
import { type PlansSearch, STATES } from './search.js';

const route = getRouteApi('/plans');

/** How far a plan is, in a few words. */
function progressText({ state, progress, error }: PlanSummary): string {
  const { total, completed, failed, running, 'input-required': asking } = progress;
  return [
    `${numberText(completed)} of ${numberText(total)} ${total === 1 ? 'step' : 'steps'}`,
    ...(running > 0 ? [`${running} running`] : []),
    ...(asking > 0 ? [`${asking} asking`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(state === 'failed' && error ? [error.code] : []),
  ].join(' · ');
}

function PlanRow({ plan, isCurrent }: { plan: PlanSummary; isCurrent: boolean }) {
  const { plan_id, description, state, progress, created_at } = plan;
  return (
    <Link
      from="/plans"
      to="/plans"
      search={({ step: _, ...old }) => ({ ...old, plan: plan_id })}
      replace
      className={`entry${isCurrent ? ' current' : ''}`}
      aria-current={isCurrent || undefined}
    >
      <span className="line">
        <strong className="cut">{description}</strong>
        <Badge state={progress['input-required'] > 0 ? 'input-required' : state} label={state} />
      </span>
      <span className="line quiet small">
        <span className="cut">{progressText(plan)}</span>
        <Ago at={created_at} />
      </span>
    </Link>
  );
}

function Empty({ search }: { search: PlansSearch }) {
  const isFiltered = search.state !== undefined || search.time !== undefined || search.session !== undefined;
  return (
    <div className="empty">
      <h2>{isFiltered ? 'Nothing matches' : 'No plans yet'}</h2>
      {isFiltered ? (
        <Link to="/plans" search={{}}>
          Take the filters away
        </Link>
      ) : (
        <p className="quiet">
          A plan is a graph of steps, each of which is a message to an agent. Agents propose one with the tool{' '}
          <code>plan.create</code>, callers with <code>/plans/create</code>.
        </p>
      )}
    </div>
  );
}

/** Plans: which of them run, wait or failed, and one of them beside the list. */
export function Plans() {
  const search = route.useSearch();
  const { plan: current, state, time, session } = search;
  const navigate = useNavigate({ from: '/plans' });
  const client = useQueryClient();
  const list = useInfiniteQuery(plansQuery(search));
  const field = useRef<HTMLSelectElement>(null);
  const answer = useRef<AnswerKeys>(null);
  useEffect(
    () =>
      follow({ types: PLAN_TYPES }, () => {
        void client.invalidateQueries({ queryKey: ['plans'], predicate: isShort });
        for (const queryKey of [['plan'], ['message'], ['request']]) void client.invalidateQueries({ queryKey });
      }),
    [client],
  );
  const plans = list.data?.pages.flatMap((page) => page.plans) ?? [];
  const counted = list.data?.pages[0];
  const close = () => void navigate({ search: ({ plan: _, step: __, ...old }) => old, replace: true });
  useListKeys({
    ids: plans.map(({ plan_id }) => plan_id),
    current,
    select: (plan) => void navigate({ search: ({ step: _, ...old }) => ({ ...old, plan }), replace: true }),
    close,
    field,
    more: answerKeys(answer),
  });
  const filter = (set: PlansSearch) =>
    void navigate({ search: ({ plan: _, step: __, ...old }) => ({ ...old, ...set }), replace: true });
  return (
    <ListView
      name="Plans"
      label={['Plans', 'Plan']}
      className="plans"
      count={counted && countText(counted)}
      filters={
        <>
          <div className="line choices">
            <FilterChoice
              ref={field}
              label="State"
              any="All states"
              value={state}
              values={STATES}
              change={(to) => filter({ state: to })}
            />
            <FilterChoice
              label="Created within"
              any="Any time"
              value={time}
              values={WITHIN}
              text={(one) => `Last ${one}`}
              change={(to) => filter({ time: to })}
            />
          </div>
          {session !== undefined && (
            <p className="small quiet">
              Of one session.{' '}
              <Link from="/plans" to="/plans" search={({ session: _, ...old }) => old}>
                Show those of all
              </Link>
            </p>
          )}
        </>
      }
      list={list}
      rows={plans}
      idOf={({ plan_id }) => plan_id}
      row={(plan, isCurrent) => <PlanRow plan={plan} isCurrent={isCurrent} />}
      empty={<Empty search={search} />}
      current={current}
      close={close}
      hint="Select a plan to see its steps."
    >
      {current && <PlanDetail key={current} planId={current} step={search.step} answer={answer} />}
    </ListView>
  );
}
