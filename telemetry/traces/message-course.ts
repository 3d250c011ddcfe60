import { derivedSpanId, spanIdOf, uuidOf } from '../../runtime/ids.js';
import type { CourseFacts, DispatchFacts, MessageFacts, RequestFacts } from './facts.js';
import { later, type Span, spanOf } from './span.js';

/** The states of a message that is over, with the status of its span. */
const ENDED: Record<string, Span['status']> = { completed: 'ok', failed: 'error', canceled: 'unset' };
/** The same of a dispatch; `sent` is missing. One that was released went to nobody. */
const DISPATCH_ENDED: Record<string, Span['status']> = {
  completed: 'ok',
  input_required: 'ok',
  failed: 'error',
  lost: 'error',
  canceled: 'unset',
  released: 'unset',
};

/** The end of a message; null while it is not over. */
const endOf = ({ state, completed_at, updated_at }: MessageFacts): Date | null =>
  state in ENDED ? (completed_at ?? updated_at) : null;

function messageSpan(message: MessageFacts, isTruncated: boolean): Span {
  const { message_id, method, state } = message;
  return spanOf({
    span_id: spanIdOf(uuidOf(message_id)),
    parent_span_id: message.parent_span_id,
    name: method,
    kind: 'server',
    start: message.created_at,
    end: endOf(message),
    status: ENDED[state] ?? 'unset',
    attributes: {
      'gen_ai.conversation.id': message.session_id,
      'gen_ai.agent.name': message.agent_type ?? message.want_agent_type,
      'error.type': message.error_code,
      'fleet.message.id': message_id,
      'fleet.message.state': state,
      'fleet.message.sender': message.sender_agent_type,
      'fleet.tenant.id': message.tenant_id,
      'fleet.trace.truncated': isTruncated || undefined,
    },
  });
}

/** The dispatch and, within it, the agent at work: whose span id is what the agent got as its parent. */
function dispatchSpans(
  message: MessageFacts,
  parent: Span,
  dispatch: DispatchFacts,
  sent: Date,
  isLast: boolean,
): Span[] {
  const { dispatch_id, agent_type, state, ended_at } = dispatch;
  const span_id = derivedSpanId('dispatch', dispatch_id);
  const times = {
    start: sent,
    end: state === 'sent' ? null : ended_at,
    status: DISPATCH_ENDED[state] ?? 'unset',
  } as const;
  const usage = isLast ? message.usage : null;
  return [
    spanOf({
      ...times,
      span_id,
      parent_span_id: parent.span_id,
      name: 'dispatch',
      attributes: {
        'fleet.dispatch.id': dispatch_id,
        'fleet.dispatch.state': state,
        'fleet.dispatch.attempt': dispatch.attempt,
        'fleet.agent.deployment_mode': dispatch.deployment_mode,
        'error.type': dispatch.error_code,
      },
    }),
    spanOf({
      ...times,
      span_id: spanIdOf(uuidOf(dispatch_id)),
      parent_span_id: span_id,
      name: `invoke_agent ${agent_type}`,
      kind: 'client',
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.provider.name': 'agent-fleet',
        'gen_ai.agent.name': agent_type,
        'gen_ai.agent.id': dispatch.instance_id,
        'gen_ai.conversation.id': message.session_id,
        'gen_ai.usage.input_tokens': usage?.input_tokens,
        'gen_ai.usage.output_tokens': usage?.output_tokens,
        'gen_ai.response.model': usage?.model,
        'error.type': dispatch.error_code,
      },
    }),
  ];
}

/** The times in which the message was with nobody. @param atWork the spans of those that it was with */
function queueSpans(message: MessageFacts, parent: Span, admitted: Date, atWork: readonly Span[]): Span[] {
  const spans: Span[] = [];
  let ready: Date | null = admitted;
  const waitedUntil = (end: Date | null): void => {
    if (!ready || (end && end <= ready)) return;
    const span_id = derivedSpanId('queue_wait', message.message_id, spans.length);
    spans.push(spanOf({ span_id, parent_span_id: parent.span_id, name: 'queue_wait', start: ready, end }));
  };
  for (const { start, end } of atWork.toSorted((a, b) => a.start.getTime() - b.start.getTime())) {
    waitedUntil(start);
    ready = end && ready && later(ready, end);
  }
  waitedUntil(endOf(message));
  return spans;
}

/** The time in which a human was waited for. */
export function requestSpan(request: RequestFacts, message: MessageFacts, parent: Span): Span {
  return spanOf({
    span_id: derivedSpanId('request', request.request_id),
    parent_span_id: parent.span_id,
    name: request.kind === 'approval' ? 'approval_wait' : 'input_wait',
    start: request.requested_at,
    end: request.ended_at ?? endOf(message),
    status: request.state === 'resolved' ? 'ok' : 'unset',
    attributes: {
      'fleet.request.id': request.request_id,
      'fleet.request.kind': request.kind,
      'fleet.request.source': request.source,
      'fleet.request.state': request.state,
      'fleet.request.resolution': request.resolution,
      'fleet.policy.name': request.policy_name,
      'fleet.guard.name': request.guard,
      'gen_ai.tool.name': request.tool,
    },
  });
}

/** A dispatch that went out, and when. */
interface SentDispatch {
  dispatch: DispatchFacts;
  at: Date;
}

/** The dispatches that went out, in that order: not before the event that says so was written. */
function sentDispatches({ dispatches, events }: CourseFacts): SentDispatch[] {
  const written = new Map(events.map(({ dispatch_id, occurred_at }) => [dispatch_id, occurred_at]));
  const sent = dispatches.flatMap((dispatch) => {
    if (!dispatch.sent_at || dispatch.state === 'open') return [];
    return { dispatch, at: later(dispatch.sent_at, written.get(dispatch.dispatch_id)) };
  });
  return sent.sort((one, other) => one.at.getTime() - other.at.getTime());
}

/** The accept transaction. Where an agent has room it writes the first dispatch too, which goes out after it. */
function admissionSpan(message: MessageFacts, parent: Span, { events }: CourseFacts, first?: SentDispatch): Span {
  const { message_id, created_at } = message;
  const received = events.find(({ event_type }) => event_type === 'message.received');
  const isSentAtOnce = first?.dispatch.sent_at?.getTime() === created_at.getTime();
  return spanOf({
    span_id: derivedSpanId('admission', message_id),
    parent_span_id: parent.span_id,
    name: 'admission',
    start: created_at,
    end: later(created_at, isSentAtOnce ? first?.at : received?.occurred_at),
  });
}

/** The spans that say when a message was where. */
export interface MessageCourse {
  root: Span;
  /** The agents at work, in that order. */
  agents: Span[];
  /** All of them: also admission, queue, dispatches and waits for humans, except those of tool calls. */
  spans: Span[];
}

/**
 * The course of one message, by what the record says of it.
 * @param facts of this message alone
 * @param isTruncated whether its trace has fewer spans than there are
 */
export function messageCourse(message: MessageFacts, facts: CourseFacts, isTruncated: boolean): MessageCourse {
  const root = messageSpan(message, isTruncated);
  const sent = sentDispatches(facts);
  const admission = admissionSpan(message, root, facts, sent[0]);
  const dispatched = sent.map(({ dispatch, at }, place) =>
    dispatchSpans(message, root, dispatch, at, place === sent.length - 1),
  );
  const waits = facts.requests
    .filter(({ stage }) => stage !== 'tool')
    .map((request) => requestSpan(request, message, root));
  const atWork = [...dispatched.flatMap(([dispatch]) => dispatch ?? []), ...waits];
  const queued = queueSpans(message, root, admission.end ?? admission.start, atWork);
  const agents = dispatched.flatMap(([, agent]) => agent ?? []);
  return { root, agents, spans: [root, admission, ...queued, ...dispatched.flat(), ...waits] };
}
