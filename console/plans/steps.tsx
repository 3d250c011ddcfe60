import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { Plan, PlanStep } from '../../contracts/api/plans.js';
import { asksPerson } from '../../contracts/message-states.js';
import { messageQuery } from '../api/messages.js';
import { instanceName } from '../fleet/instance-name.js';
import { tookText } from '../messages/words.js';
import { Fact } from '../parts/fact.js';
import { Failed, Loading } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import { Parts } from '../parts/value.js';
import { Question } from '../talk/question.js';
import { toneOf } from './step-state.js';
import { waitOf, waitText } from './waits.js';

/** What the message of a step asks, and what came of it. */
function StepMessage({ messageId }: { messageId: string }) {
  const { data: message, error, refetch } = useQuery(messageQuery(messageId));
  if (error && !message) return <Failed error={error} retry={() => void refetch()} />;
  if (!message) return <Loading rows={1} />;
  const asked = asksPerson(message.state) ? message.input_request : undefined;
  return (
    <>
      {asked && <Question requestId={asked.request_id} />}
      {message.artifacts.length > 0 && (
        <section>
          <h3>Output</h3>
          {message.artifacts.map((artifact) => (
            <Parts key={artifact.artifactId} parts={artifact.parts} markdown />
          ))}
        </section>
      )}
    </>
  );
}

/** What a step has to say beyond its row. */
function StepDetail({ step, dependents }: { step: PlanStep; dependents: readonly string[] }) {
  const { description, depends_on, message, message_id, attempts, max_attempts, agent_type, instance_id, worker } =
    step;
  const { started_at, timeout_seconds, requires_approval, skill_id } = step;
  return (
    <div className="step-detail">
      <p className="prose">{description}</p>
      <dl className="facts">
        <Fact name="Agent">
          {worker?.instance_id ?? instance_id ?? agent_type ?? 'that of the session'}
          {skill_id && <span className="quiet"> for the skill {skill_id}</span>}
        </Fact>
        {depends_on.length > 0 && <Fact name="Needs">{depends_on.join(', ')}</Fact>}
        {dependents.length > 0 && <Fact name="Needed by">{dependents.join(', ')}</Fact>}
        <Fact name="Attempts">
          {attempts} of {max_attempts}
        </Fact>
        {started_at && (
          <Fact name="Started">
            <Ago at={started_at} />
          </Fact>
        )}
        {timeout_seconds !== null && <Fact name="Time">{numberText(timeout_seconds)} s at most</Fact>}
        {requires_approval && <Fact name="Approval">is needed before it is sent</Fact>}
        {message_id && (
          <Fact name="Message">
            <Link to="/messages/$messageId" params={{ messageId: message_id }} search={{}}>
              Open the message
            </Link>
          </Fact>
        )}
      </dl>
      <section>
        <h3>What it sends</h3>
        <Parts parts={message} />
      </section>
      {message_id && <StepMessage messageId={message_id} />}
    </div>
  );
}

function StepRow({ step, plan, isOpen, show }: { step: PlanStep; plan: Plan; isOpen: boolean; show: () => void }) {
  const { step_id, description, state, agent_type, worker, duration_ms, error, attempts } = step;
  const wait = waitOf(step, plan.steps, plan.state === 'running');
  const dependents = plan.steps.filter(({ depends_on }) => depends_on.includes(step_id));
  return (
    <li>
      <button type="button" id={`step-${step_id}`} aria-expanded={isOpen} onClick={show}>
        <span className="line">
          <strong className="cut">{step_id}</strong>
          <span className={`badge ${toneOf(state)}`}>{state === 'input-required' ? 'asks a person' : state}</span>
        </span>
        <span className="line quiet small">
          <span className="cut">{description}</span>
          <span className="when">
            {worker ? instanceName(worker.instance_id) : agent_type}
            {duration_ms !== undefined && ` · ${tookText(duration_ms)}`}
            {state === 'running' && worker && (
              <>
                {' · for '}
                <Ago at={worker.since} short />
              </>
            )}
          </span>
        </span>
        {wait && <span className="small wait-of">{waitText(wait)}</span>}
        {error && (
          <span className={`small ${state === 'failed' ? 'problem' : 'quiet'}`}>
            {attempts > 1 && `Attempt ${attempts}: `}
            {error.code} {error.message}
          </span>
        )}
      </button>
      {isOpen && <StepDetail step={step} dependents={dependents.map((one) => one.step_id)} />}
    </li>
  );
}

/** The steps in their order, one of them open. */
export function Steps({
  plan,
  current,
  show,
}: {
  plan: Plan;
  current: string | undefined;
  show: (stepId: string | undefined) => void;
}) {
  useEffect(() => {
    if (current !== undefined) document.getElementById(`step-${current}`)?.scrollIntoView({ block: 'nearest' });
  }, [current]);
  return (
    <section>
      <h3>Steps</h3>
      <ol className="plan-steps">
        {plan.steps.map((step) => {
          const isOpen = step.step_id === current;
          return (
            <StepRow
              key={step.step_id}
              step={step}
              plan={plan}
              isOpen={isOpen}
              show={() => show(isOpen ? undefined : step.step_id)}
            />
          );
        })}
      </ol>
    </section>
  );
}
