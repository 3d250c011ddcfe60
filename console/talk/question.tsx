import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useRef } from 'react';
import { requestQuery } from '../api/requests.js';
import { AnswerForm, type AnswerKeys } from '../inbox/answer-form.js';
import { decisions, useDecisions } from '../inbox/decisions.js';
import { AboutToBeSent, OwnDecision } from '../inbox/request-detail.js';
import { Failed, Loading } from '../parts/states.js';
import { Json } from '../parts/value.js';

const ASKERS = { agent: 'The agent asks', policy: 'A policy asks', guard: 'A guard asks', plan: 'A plan asks' };

/** What an agent, a policy or a guard asks in a conversation, with the form that answers it. */
export function Question({ requestId }: { requestId: string }) {
  const { data: request, error, refetch } = useQuery(requestQuery(requestId));
  const decision = useDecisions().get(requestId);
  const keys = useRef<AnswerKeys>(null);
  if (error && !request) return <Failed error={error} retry={() => void refetch()} />;
  if (!request) return <Loading rows={1} />;
  const { input_request: asked, state, decided, may_answer } = request;
  if (state !== 'open')
    return (
      <p className="quiet answered">
        {asked.title}: <strong>{decided?.resolution ?? state}</strong>
      </p>
    );
  const isOnItsWay = decision !== undefined && decision.state !== 'refused';
  return (
    <section className="question" aria-label={asked.title}>
      <p className="quiet small">{ASKERS[asked.source]}</p>
      <h2>{asked.title}</h2>
      {asked.prompt && <p className="prose">{asked.prompt}</p>}
      {asked.arguments && <Json value={asked.arguments} />}
      {decision && <OwnDecision decision={decision} request={request} />}
      <AboutToBeSent decision={decision} />
      {may_answer && !isOnItsWay && (
        <AnswerForm
          key={requestId}
          request={request}
          decide={(answer) => decisions.decide(request, answer)}
          keys={keys}
        />
      )}
      {!may_answer && (
        <p className="notice wait">
          Somebody else has to answer: your credential may not.{' '}
          <Link to="/inbox" search={{ box: 'all', request: requestId }}>
            See it in the inbox
          </Link>
        </p>
      )}
    </section>
  );
}
