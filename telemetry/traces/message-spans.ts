import { derivedSpanId, spanIdOf, uuidOf } from '../../runtime/ids.js';
import type { DispatchFacts, EventFacts, MessageDetails, MessageFacts, RequestFacts } from './facts.js';
import { later, movedInto, type Span, spanOf } from './span.js';

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

function messageSpan(message: MessageFacts): Span {
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

const DECIDES = /^(policy|guard)\.(denied|audited|allowed|approval_required)$/;

/** What a policy or a guard decided, at the moment of its event. */
function decisionSpan({ event_id, event_type, occurred_at, payload }: EventFacts, parent: Span): Span {
  const [by = '', decision = ''] = event_type.split('.');
  const text = (name: string) => (typeof payload[name] === 'string' ? payload[name] : undefined);
  return spanOf({
    span_id: derivedSpanId('decision', event_id),
    parent_span_id: parent.span_id,
    name: by,
    start: occurred_at,
    end: occurred_at,
    status: 'ok',
    attributes: {
      [`fleet.${by}.decision`]: decision,
      'fleet.policy.id': text('policy_id'),
      'fleet.policy.name': text('policy_name'),
      'fleet.guard.name': text('guard'),
      'fleet.action': text('action'),
      'gen_ai.tool.name': text('tool'),
    },
  });
}

/** The time in which a human was waited for. */
function requestSpan(request: RequestFacts, message: MessageFacts, parent: Span): Span {
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
function sentDispatches({ dispatches, events }: MessageDetails): SentDispatch[] {
  const written = new Map(
    events
      .filter(({ event_type }) => event_type === 'dispatch.sent')
      .map(({ payload, occurred_at }) => [payload.dispatch_id, occurred_at]),
  );
  const sent = dispatches.flatMap((dispatch) => {
    if (!dispatch.sent_at || dispatch.state === 'open') return [];
    return { dispatch, at: later(dispatch.sent_at, written.get(dispatch.dispatch_id)) };
  });
  return sent.sort((one, other) => one.at.getTime() - other.at.getTime());
}

/** The accept transaction. On the fast path it writes the first dispatch too, which goes out after it. */
function admissionSpan(message: MessageFacts, parent: Span, { events }: MessageDetails, first?: SentDispatch): Span {
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

const holds = ({ start, end }: Span, moment: Date) => start <= moment && (!end || moment <= end);

/** Tool calls and streams, each within the span that it is part of: its times are those of another clock. */
function recordedSpans({ recorded }: MessageDetails, agents: readonly Span[]): Span[] {
  const byId = new Map(agents.map((agent) => [agent.span_id, agent]));
  return recorded.map((row) => {
    const { started_at: start, ended_at: end, error_type, attributes, message_id: _, ...fields } = row;
    const status = error_type === null ? 'ok' : 'error';
    const span = spanOf({ ...fields, start, end, status, attributes: { ...attributes, 'error.type': error_type } });
    const enclosing = byId.get(row.parent_span_id) ?? agents.find((agent) => holds(agent, start));
    const moved = movedInto(enclosing, span);
    byId.set(moved.span_id, moved);
    return moved;
  });
}

/** The spans of one message, by what the record says of it. @param details of this message alone */
export function messageSpans(message: MessageFacts, details: MessageDetails): Span[] {
  const root = messageSpan(message);
  const sent = sentDispatches(details);
  const admission = admissionSpan(message, root, details, sent[0]);
  const dispatched = sent.map(({ dispatch, at }, place) =>
    dispatchSpans(message, root, dispatch, at, place === sent.length - 1),
  );
  const agents = dispatched.flatMap(([, agent]) => agent ?? []);
  const recorded = recordedSpans(details, agents);
  /** What is about a tool call belongs to its span, else to that of the agent which made it. */
  const enclosing = (moment: Date, tool: unknown): Span => {
    if (typeof tool !== 'string') return root;
    const calls = recorded.filter(({ attributes }) => attributes['gen_ai.tool.name'] === tool);
    return calls.find((span) => holds(span, moment)) ?? agents.findLast(({ start }) => start <= moment) ?? root;
  };
  const decisions = details.events
    .filter(({ event_type, payload }) => DECIDES.test(event_type) && payload.reminder === undefined)
    .map((event) => decisionSpan(event, enclosing(event.occurred_at, event.payload.tool)));
  const [ofTools, ofMessage] = [true, false].map((isOfTool) =>
    details.requests
      .filter(({ stage }) => (stage === 'tool') === isOfTool)
      .map((request) => requestSpan(request, message, isOfTool ? enclosing(request.requested_at, request.tool) : root)),
  ) as [Span[], Span[]];
  const atWork = [...dispatched.flatMap(([dispatch]) => dispatch ?? []), ...ofMessage];
  const queued = queueSpans(message, root, admission.end ?? admission.start, atWork);
  return [root, admission, ...decisions, ...queued, ...dispatched.flat(), ...recorded, ...ofTools, ...ofMessage];
}
