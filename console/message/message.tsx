import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { MessageRecord, WaitsFor } from '../../contracts/api/messages.js';
import { isRepeatable } from '../../contracts/message-states.js';
import { ApiError, call } from '../api/call.js';
import { follow, MESSAGE_TYPES } from '../api/live.js';
import { messageQuery } from '../api/messages.js';
import { hasScope, sessionQuery } from '../api/session.js';
import { instanceName } from '../fleet/instance-name.js';
import type { AnswerKeys } from '../inbox/answer-form.js';
import { decisions, useDecisions } from '../inbox/decisions.js';
import { RequestDetail } from '../inbox/request-detail.js';
import { targetText } from '../messages/words.js';
import { CopyCurl, Id } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { Fact } from '../parts/fact.js';
import { useKeys } from '../parts/keys.js';
import { Badge, Failed, Loading } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago, durationText } from '../parts/time.js';
import { Parts } from '../parts/value.js';
import { Timeline } from './timeline.js';

const route = getRouteApi('/messages/$messageId');

const WAITS: Record<WaitsFor['kind'], string> = {
  agent: 'None of its agents is online.',
  room: 'All of its agents that are online are full.',
  turn: 'In its session another message comes first.',
  evaluator: 'A policy is being evaluated outside of the platform.',
  quota: 'Agents have as many messages of this tenant as they may.',
  person: 'A person is asked.',
};

/** What happens now, and since when: who has the message, or what it waits for. */
function Now({ message }: { message: MessageRecord }) {
  const { state, waits_for: waits, error, instance_id, started_at, completed_at, updated_at } = message;
  if (state === 'failed')
    return (
      <div className="notice bad">
        <strong>{error?.code ?? 'It failed'}</strong> {error?.message}
      </div>
    );
  if (waits)
    return (
      <div className="notice wait">
        <strong>{WAITS[waits.kind]}</strong> {targetText(waits)} It has waited for <Ago at={waits.since} short />
        {waits.ahead !== undefined && waits.ahead > 0 && `; ${numberText(waits.ahead)} come first`}.
      </div>
    );
  if (state === 'working')
    return (
      <div className="notice busy">
        <strong>{instance_id ? instanceName(instance_id) : 'An agent'} has it</strong> since{' '}
        <Ago at={started_at ?? updated_at} short />.
      </div>
    );
  if (completed_at) return null;
  return <div className="notice">It is on its way.</div>;
}

function Facts({ message }: { message: MessageRecord }) {
  const { agent_type, instance_id, session_id, created_at, duration_ms, usage, trace_id, retry_of } = message;
  return (
    <dl className="facts">
      <Fact name="Agent">
        {agent_type ?? 'none yet'}{' '}
        {instance_id && (
          <span className="quiet" title={instance_id}>
            {instanceName(instance_id)}
          </span>
        )}
      </Fact>
      <Fact name="Accepted">
        <Ago at={created_at} />
      </Fact>
      {duration_ms !== undefined && (
        <Fact name="Took">{duration_ms < 1_000 ? `${duration_ms} ms` : durationText(duration_ms)}</Fact>
      )}
      {usage && (
        <Fact name="Usage">
          {numberText(usage.input_tokens)} in, {numberText(usage.output_tokens)} out
          {usage.model && <span className="quiet"> {usage.model}</span>}
        </Fact>
      )}
      <Fact name="Session">
        <Id id={session_id} />{' '}
        <Link to="/messages" search={{ session_id }}>
          its messages
        </Link>
      </Fact>
      <Fact name="Trace">
        <code>{trace_id.slice(0, 12)}…</code>
      </Fact>
      {retry_of && (
        <Fact name="Repeats">
          <Link to="/messages/$messageId" params={{ messageId: retry_of }}>
            …{retry_of.slice(-6)}
          </Link>
        </Fact>
      )}
    </dl>
  );
}

/** Shows another message in place of this one. */
type Show = (messageId: string) => void;

/** Cancels or sends again, after a question where that cannot be taken back. */
function Actions({ message, mayRetry, show }: { message: MessageRecord; mayRetry: boolean; show: Show }) {
  const { message_id, state, completed_at } = message;
  const client = useQueryClient();
  const [asks, setAsks] = useState<'cancel' | 'confirm' | null>(null);
  const cancel = useMutation({
    mutationFn: () => call('/messages/cancel', { message_id }),
    onSettled: () => client.invalidateQueries({ queryKey: ['message', message_id] }),
  });
  const retry = useMutation({
    mutationFn: (confirm: boolean) => call('/messages/retry', { message_id, ...(confirm && { confirm }) }),
    onSuccess: ({ message_id: messageId }) => show(messageId),
    onError: (error) => error instanceof ApiError && error.code === 'CONFLICT' && setAsks('confirm'),
  });
  const error = asks === null ? (cancel.error ?? retry.error) : null;
  return (
    <div className="actions">
      {completed_at === undefined && (
        <>
          <button type="button" disabled={cancel.isPending} onClick={() => setAsks('cancel')}>
            Cancel
          </button>
          <CopyCurl path="/messages/cancel" body={{ message_id }} />
        </>
      )}
      {mayRetry && isRepeatable(state) && (
        <>
          <button type="button" disabled={retry.isPending} onClick={() => retry.mutate(false)}>
            Send again
          </button>
          <CopyCurl path="/messages/retry" body={{ message_id }} />
        </>
      )}
      {error && (
        <p className="problem" role="alert">
          {error.message}
        </p>
      )}
      {asks && (
        <Dialog label="Are you sure?" onClose={() => setAsks(null)}>
          <h2>{asks === 'cancel' ? 'Cancel this message?' : 'Send it again all the same?'}</h2>
          <p>
            {asks === 'cancel'
              ? 'Its agent is told to stop. What it has done already stays done.'
              : (retry.error?.message ?? 'An agent may have acted on it already.')}
          </p>
          <div className="buttons">
            <button
              type="button"
              className="no"
              onClick={() => {
                setAsks(null);
                if (asks === 'cancel') cancel.mutate();
                else retry.mutate(true);
              }}
            >
              {asks === 'cancel' ? 'Cancel the message' : 'Send again'}
            </button>
            <button type="button" onClick={() => setAsks(null)}>
              Leave it
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

/** The keys of a message that asks somebody. */
export const answerKeys = (answer: { current: AnswerKeys | null }): Record<string, () => void> => ({
  a: () => answer.current?.yes(),
  r: () => answer.current?.no(),
  e: () => answer.current?.edit(),
  c: () => answer.current?.comment(),
  u: () => void decisions.undo(),
});

/** One message whole: what happens now, what was said, and its timeline. @param props.show where a repeat of it is shown */
export function MessageView(props: {
  messageId: string;
  answer: { current: AnswerKeys | null };
  show: Show;
  above: ReactNode;
}) {
  const { messageId, answer, show, above } = props;
  const { data: session } = useQuery(sessionQuery);
  const made = useDecisions();
  const { data: message, error, refetch } = useQuery(messageQuery(messageId));
  if (error && !message) return <Failed error={error} retry={() => void refetch()} />;
  if (!message) return <Loading />;
  const asked = message.input_request;
  const mayRetry = session != null && (hasScope(session, 'admin') || message.sent_by.id === session.principal.id);
  return (
    <div className="message">
      <header>
        {above}
        <h1 className="cut">{message.user_input || message.preview || 'A message'}</h1>
        <div className="line">
          <Badge state={message.state} />
          <Id id={messageId} />
          <CopyCurl path="/messages/get_by_id" body={{ message_id: messageId }} />
          <Actions key={messageId} message={message} mayRetry={mayRetry} show={show} />
        </div>
      </header>
      <Now message={message} />
      <div className="columns">
        <div>
          <Facts message={message} />
          <section>
            <h2>Input</h2>
            <Parts parts={message.parts} />
          </section>
          <section>
            <h2>Output</h2>
            {message.artifacts.length === 0 && (
              <p className="quiet">{message.completed_at ? 'Nothing.' : 'Nothing yet.'}</p>
            )}
            {message.artifacts.map((artifact) => (
              <Parts key={artifact.artifactId} parts={artifact.parts} markdown />
            ))}
          </section>
        </div>
        <div>
          {asked && (
            <section className="asked" aria-label="Request">
              <RequestDetail
                requestId={asked.request_id}
                decision={made.get(asked.request_id)}
                decide={(request, given) => decisions.decide(request, given)}
                keys={answer}
                isBeside
              />
            </section>
          )}
          <Timeline messageId={messageId} />
        </div>
      </div>
    </div>
  );
}

/** The page of a message. The same while it runs. */
export function Message() {
  const { messageId } = route.useParams();
  const client = useQueryClient();
  const navigate = useNavigate();
  const answer = useRef<AnswerKeys>(null);
  useEffect(
    () =>
      follow({ message_id: messageId, types: MESSAGE_TYPES }, () => {
        void client.invalidateQueries({ queryKey: ['message', messageId] });
        void client.invalidateQueries({ queryKey: ['events', messageId] });
      }),
    [client, messageId],
  );
  useKeys({ ...answerKeys(answer), escape: () => void navigate({ to: '/messages', search: {} }) });
  return (
    <MessageView
      messageId={messageId}
      answer={answer}
      show={(id) => void navigate({ to: '/messages/$messageId', params: { messageId: id } })}
      above={
        <Link to="/messages" search={{}} className="quiet">
          Messages
        </Link>
      }
    />
  );
}
