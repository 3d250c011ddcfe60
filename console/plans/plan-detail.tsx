import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import type { Plan } from '../../contracts/api/plans.js';
import { call } from '../api/call.js';
import type { AnswerKeys } from '../inbox/answer-form.js';
import { decisions, useDecisions } from '../inbox/decisions.js';
import { RequestDetail } from '../inbox/request-detail.js';
import { isYes } from '../inbox/words.js';
import { ConfirmDialog } from '../parts/confirm.js';
import { CopyCurl, Id } from '../parts/copy.js';
import { Fact } from '../parts/fact.js';
import { Badge, Failed, Loading, Problem } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago, durationText } from '../parts/time.js';
import { planQuery } from './queries.js';
import { Steps } from './steps.js';

const Graph = lazy(() => import('./graph.js'));

/** Ends a plan, after a question. */
function Cancel({ plan }: { plan: Plan }) {
  const { plan_id, description, progress } = plan;
  const client = useQueryClient();
  const [asks, setAsks] = useState(false);
  const cancel = useMutation({
    mutationFn: () => call('/plans/cancel', { plan_id }),
    onSettled: () =>
      client.invalidateQueries({ predicate: ({ queryKey: [name] }) => name === 'plan' || name === 'plans' }),
  });
  const underWay = progress.running + progress['input-required'];
  return (
    <div className="actions">
      <button type="button" disabled={cancel.isPending} onClick={() => setAsks(true)}>
        Cancel the plan
      </button>
      <CopyCurl path="/plans/cancel" body={{ plan_id }} />
      <Problem error={cancel.error} />
      {asks && (
        <ConfirmDialog
          question={`Cancel “${description.slice(0, 80)}”?`}
          label="Cancel the plan"
          danger
          onConfirm={() => cancel.mutate()}
          close={() => setAsks(false)}
        >
          <p>
            {underWay > 0 &&
              `The ${underWay} ${underWay === 1 ? 'step' : 'steps'} under way are canceled with their messages. `}
            No further step starts. What agents have done already stays done.
          </p>
        </ConfirmDialog>
      )}
    </div>
  );
}

function Facts({ plan }: { plan: Plan }) {
  const { progress, created_at, proposed_by, created_by, started_at, duration_ms, max_parallel, session_id } = plan;
  return (
    <dl className="facts">
      <Fact name="Steps">
        {numberText(progress.completed)} of {numberText(progress.total)} completed
        {progress.failed > 0 && <span className="problem">, {progress.failed} failed</span>}
      </Fact>
      <Fact name={duration_ms === undefined ? 'Started' : 'Took'}>
        {duration_ms !== undefined ? durationText(duration_ms) : started_at ? <Ago at={started_at} /> : 'not yet'}
      </Fact>
      <Fact name="Proposed">
        <Ago at={created_at} /> by {proposed_by ?? <Id id={created_by} />}
      </Fact>
      <Fact name="At once">{max_parallel} at most</Fact>
      <Fact name="Session">
        <Id id={session_id} />{' '}
        <Link to="/sessions" search={{ session: session_id }}>
          Open
        </Link>
      </Fact>
    </dl>
  );
}

/** Who approved or rejected it, unless that is asked right now. */
function Decisions({ plan: { decisions: made, input_request: asked } }: { plan: Plan }) {
  if (made.length === 0 || asked) return null;
  return (
    <section>
      <h3>Decisions</h3>
      <ul>
        {made.map(({ approval_id, principal, resolution, comment, decided_at }) => (
          <li key={approval_id}>
            <Badge state={isYes(resolution) ? 'completed' : 'failed'} label={resolution} />{' '}
            <span className="quiet">
              by {principal.type} …{principal.id.slice(-6)}, <Ago at={decided_at} />
            </span>
            {comment && <blockquote>{comment}</blockquote>}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** One plan: what it waits for, its graph, and its steps. */
export function PlanDetail(props: {
  planId: string;
  step: string | undefined;
  answer: { current: AnswerKeys | null };
}) {
  const { planId, step: current, answer } = props;
  const navigate = useNavigate({ from: '/plans' });
  const { data: plan, error, refetch } = useQuery(planQuery(planId));
  const made = useDecisions();
  if (error && !plan) return <Failed error={error} retry={() => void refetch()} />;
  if (!plan) return <Loading />;
  const { description, state, input_request: asked } = plan;
  const show = (step: string | undefined) => void navigate({ search: (old) => ({ ...old, step }), replace: true });
  return (
    <article className="detail">
      <header>
        <h2>{description}</h2>
        <div className="line plan-head">
          <Badge state={state} />
          <Id id={planId} />
          {(state === 'proposed' || state === 'running') && <Cancel plan={plan} />}
        </div>
      </header>
      {plan.error && (
        <p className={`notice ${state === 'failed' ? 'bad' : ''}`}>
          <strong>{plan.error.code}</strong> {plan.error.message}
        </p>
      )}
      <Facts plan={plan} />
      <Suspense fallback={<Loading rows={2} />}>
        <Graph plan={plan} current={current} select={show} />
      </Suspense>
      {asked && (
        <section className="asked" aria-label="Approval">
          <RequestDetail
            requestId={asked.request_id}
            decision={made.get(asked.request_id)}
            decide={(request, given) => decisions.decide(request, given)}
            keys={answer}
            isBeside
          />
        </section>
      )}
      <Steps plan={plan} current={current} show={show} />
      <Decisions plan={plan} />
      <footer className="quiet">
        <CopyCurl path="/plans/get_by_id" body={{ plan_id: planId }} />
      </footer>
    </article>
  );
}
