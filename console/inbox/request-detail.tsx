import { queryOptions, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { RequestRecord } from '../../contracts/api/policies/requests.js';
import { ApiError, call } from '../api/call.js';
import { messageQuery } from '../api/messages.js';
import { requestQuery, saveReceipt, similarQuery } from '../api/requests.js';
import { hasScope, sessionQuery } from '../api/session.js';
import { CopyCurl, Id } from '../parts/copy.js';
import { Fact } from '../parts/fact.js';
import { Badge, Failed, Loading, Outcome } from '../parts/states.js';
import { Ago, Countdown } from '../parts/time.js';
import { Json, Parts } from '../parts/value.js';
import { planQuery } from '../plans/queries.js';
import { AnswerForm, type AnswerKeys } from './answer-form.js';
import { type Answer, type Decision, decisions, isPassing, resolveBody, resolvePath } from './decisions.js';
import { senderOf } from './request-row.js';
import { isDraftable, isYes } from './words.js';

/** What an agent has answered and a guard holds; null where nothing is held. */
const heldQuery = (messageId: string) =>
  queryOptions({
    queryKey: ['held', messageId],
    queryFn: () =>
      call('/messages/get_held_output', { message_id: messageId }).catch((error: unknown) => {
        if (error instanceof ApiError && error.status < 500 && error.status > 0) return null;
        throw error;
      }),
  });

const ASKERS: Record<RequestRecord['input_request']['source'], string> = {
  agent: 'The agent',
  policy: 'A policy',
  guard: 'A guard',
  plan: 'A plan',
};

function Facts({ request, isBeside }: { request: RequestRecord; isBeside: boolean }) {
  const { input_request: asked, agent_type, session_id, message_id } = request;
  const { tool, executor, approvers = [], quorum, approvals } = asked;
  return (
    <dl className="facts">
      <Fact name="Asked by">
        {ASKERS[asked.source]}
        {asked.policy_id && (
          <>
            {' '}
            <Id id={asked.policy_id} />
          </>
        )}
        {asked.guard && ` “${asked.guard}”`}, <Ago at={asked.requested_at} />
      </Fact>
      <Fact name="Agent">{agent_type ?? 'none yet'}</Fact>
      <Fact name="For">{senderOf(request)}</Fact>
      {tool && (
        <Fact name="Tool">
          <code>{tool}</code>
          {executor && (
            <span className="quiet"> made by {executor.type === 'agent' ? executor.id : 'the platform'}</span>
          )}
        </Fact>
      )}
      {request.state === 'open' && (
        <Fact name="Time to decide">
          <Countdown at={asked.expires_at} />
        </Fact>
      )}
      {quorum > 1 && (
        <Fact name="Approvals">
          {approvals.length} of {quorum}
        </Fact>
      )}
      {approvers.length > 0 && <Fact name="Approvers">{approvers.join(', ')}</Fact>}
      {!isBeside && message_id && (
        <Fact name="Message">
          <Link to="/messages/$messageId" params={{ messageId: message_id }}>
            Open <kbd>O</kbd>
          </Link>{' '}
          <span className="quiet">
            in <Id id={session_id} />
          </span>
        </Fact>
      )}
    </dl>
  );
}

/** What is decided about, beside the arguments of a tool call. */
function Subject({ request, isBeside }: { request: RequestRecord; isBeside: boolean }) {
  const { message_id, plan_id, input_request: asked } = request;
  const mayHold = message_id !== undefined && asked.source === 'guard' && request.state === 'open';
  const message = useQuery({ ...messageQuery(message_id ?? ''), enabled: message_id !== undefined });
  const held = useQuery({ ...heldQuery(message_id ?? ''), enabled: mayHold });
  const plan = useQuery({ ...planQuery(plan_id ?? ''), enabled: message_id === undefined && plan_id !== undefined });
  return (
    <>
      {held.data && (
        <section>
          <h3>The answer that is held</h3>
          {held.data.output.artifacts.map((artifact) => (
            <Parts key={artifact.artifactId} parts={artifact.parts} />
          ))}
          {held.data.output.status_message && <Json value={held.data.output.status_message} />}
          {held.data.output.input_request && <Json value={held.data.output.input_request} />}
        </section>
      )}
      {plan.data && !isBeside && (
        <section>
          <h3>The plan</h3>
          <p className="prose">{plan.data.description}</p>
          <ol className="steps">
            {plan.data.steps.map((step) => (
              <li key={step.step_id}>
                <strong>{step.description}</strong>{' '}
                <span className="quiet">{step.agent_type ?? step.instance_id ?? step.skill_id ?? ''}</span>
                <Parts parts={step.message} />
              </li>
            ))}
          </ol>
        </section>
      )}
      {message.data && !isBeside && (
        <section>
          <h3>The message that waits</h3>
          <Parts parts={message.data.parts} />
        </section>
      )}
    </>
  );
}

function Similar({ requestId }: { requestId: string }) {
  const { data = [] } = useQuery(similarQuery(requestId));
  if (data.length === 0) return null;
  return (
    <section>
      <h3>Earlier decisions about the same</h3>
      <ul className="similar">
        {data.slice(0, 5).map(({ request_id, decided, outcome }) => (
          <li key={request_id}>
            <Link to="/inbox" search={(search) => ({ ...search, request: request_id })}>
              <Badge
                state={isYes(decided?.resolution ?? '') ? 'completed' : 'failed'}
                label={decided?.resolution ?? '?'}
              />
            </Link>{' '}
            {decided && (
              <span className="quiet">
                by {decided.principals.map(({ id, name }) => name ?? `…${id.slice(-6)}`).join(', ')},{' '}
                <Ago at={decided.at} />
              </span>
            )}{' '}
            {outcome && <Outcome outcome={outcome} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Who decided, what came of it, and the receipt. */
function Decided({ request }: { request: RequestRecord }) {
  const { decided, outcome, request_id } = request;
  if (!decided) return null;
  const isExpired = decided.resolution === 'expired';
  return (
    <section className="decided">
      <h3>{isExpired ? 'Nobody decided in time' : `It was ${decided.resolution}`}</h3>
      <p>
        {!isExpired && <>by {decided.principals.map(({ type, id, name }) => name ?? `${type} ${id}`).join(', ')}, </>}
        <Ago at={decided.at} />
      </p>
      {decided.comment && <blockquote>{decided.comment}</blockquote>}
      {outcome && (
        <p>
          What came of it: <Outcome outcome={outcome} />
        </p>
      )}
      <p className="actions">
        <button type="button" onClick={() => void saveReceipt(request_id)}>
          Save the signed receipt
        </button>
        <CopyCurl path="/requests/get_receipt" body={{ request_id }} />
      </p>
    </section>
  );
}

/** Leads to a policy that decides the same from now on, for who may create it. */
function AlwaysLikeThis({ request }: { request: RequestRecord }) {
  const { data: session } = useQuery(sessionQuery);
  if (!session || !hasScope(session, 'admin') || !isDraftable(request)) return null;
  return (
    <p className="actions">
      <Link to="/policies" search={{ panel: 'new', request: request.request_id }} className="button">
        Always like this
      </Link>
      <span className="quiet small">Drafts a policy, which you look at first.</span>
    </p>
  );
}

/** An own answer that is on its way, or was refused. */
export function OwnDecision({ decision, request }: { decision: Decision; request: RequestRecord }) {
  const { state, answer, error } = decision;
  if (state === 'refused' && error)
    return (
      <div className="notice bad" role="alert">
        <strong>Your answer was not taken.</strong>{' '}
        {request.decided
          ? `It is already ${request.decided.resolution}, by ${request.decided.principals.map(({ id, name }) => name ?? id).join(', ')}.`
          : error.message}{' '}
        {answer.comment && <>Your comment: “{answer.comment}”. </>}
        {isPassing(error) && (
          <button type="button" onClick={() => decisions.retry(request.request_id)}>
            Try again
          </button>
        )}
      </div>
    );
  if (state === 'sent' && request.state === 'open' && request.input_request.quorum > 1)
    return <div className="notice">Your answer counts. More approvals are needed.</div>;
  return null;
}

/** An own answer that can still be taken back. */
export function AboutToBeSent({ decision }: { decision: Decision | undefined }) {
  if (decision?.state !== 'waiting') return null;
  return (
    <p className="notice busy" role="status">
      Your answer “{decision.answer.resolution}” is about to be sent.
      <button type="button" onClick={() => decisions.undo()}>
        Undo
      </button>
    </p>
  );
}

/**
 * One request: all that a decision needs.
 * @param props.known the same as a list has it, which is shown until it is read
 * @param props.isBeside its message is shown beside it
 */
export function RequestDetail(props: {
  requestId: string;
  known?: RequestRecord | undefined;
  decision: Decision | undefined;
  decide: (request: RequestRecord, answer: Answer) => void;
  keys: { current: AnswerKeys | null };
  isBeside?: boolean;
}) {
  const { requestId, known, decision, decide, keys, isBeside = false } = props;
  const { data: request, error, refetch } = useQuery({ ...requestQuery(requestId), placeholderData: known });
  if (error && !request) return <Failed error={error} retry={() => void refetch()} />;
  if (!request) return <Loading />;
  const { input_request: asked } = request;
  const mayDecide = request.state === 'open' && request.may_answer;
  const isOnItsWay = decision?.state === 'waiting' || decision?.state === 'sending';
  const sample: Answer = { resolution: asked.kind === 'approval' ? 'approved' : 'confirmed' };
  return (
    <article className="detail">
      <header>
        <h2>{asked.title}</h2>
        {asked.prompt && <p className="prose">{asked.prompt}</p>}
      </header>
      {decision && <OwnDecision decision={decision} request={request} />}
      {isBeside && <AboutToBeSent decision={decision} />}
      <Decided request={request} />
      <Facts request={request} isBeside={isBeside} />
      {asked.arguments && (
        <section>
          <h3>Arguments</h3>
          <Json value={asked.arguments} />
        </section>
      )}
      {mayDecide && !isOnItsWay && decision?.state !== 'sent' && (
        <AnswerForm key={requestId} request={request} decide={(answer) => decide(request, answer)} keys={keys} />
      )}
      {request.state === 'open' && !request.may_answer && (
        <p className="notice">
          You cannot answer this request:{' '}
          {asked.approvers?.length
            ? 'you are none of its approvers.'
            : 'it needs the scope admin, or somebody else than its sender.'}
        </p>
      )}
      <AlwaysLikeThis request={request} />
      <Similar requestId={requestId} />
      <Subject request={request} isBeside={isBeside} />
      <footer className="quiet">
        <Id id={requestId} />
        {asked.digest && <span title={asked.digest}>digest {asked.digest.slice(0, 12)}…</span>}
        {mayDecide && <CopyCurl path={resolvePath(request)} body={resolveBody(request, sample)} />}
      </footer>
    </article>
  );
}
