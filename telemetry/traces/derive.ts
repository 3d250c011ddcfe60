import type { MessageDetails, MessageFacts } from './facts.js';
import { endOf, messageSpans } from './message-spans.js';
import type { Span } from './span.js';

/** Whether a message was at work at a moment. */
const wasAtWork = (message: MessageFacts, moment: Date): boolean => {
  const end = endOf(message);
  return message.created_at <= moment && (end === null || moment <= end);
};

/**
 * The spans of messages, by their ids. An event that names neither message nor dispatch, as those of policies, belongs to the message of its
 * trace and session that was at work.
 */
export function spansOfMessages(messages: readonly MessageFacts[], details: MessageDetails): Map<string, Span[]> {
  const ownerOf = new Map(details.dispatches.map(({ dispatch_id, message_id }) => [dispatch_id, message_id]));
  const parts = new Map(messages.map(({ message_id }) => [message_id, emptyDetails()]));
  for (const event of details.events) {
    const { session_id, trace_id, occurred_at, payload } = event;
    const { dispatch_id } = payload;
    const named = event.message_id ?? (typeof dispatch_id === 'string' ? ownerOf.get(dispatch_id) : undefined);
    const isAbout = (message: MessageFacts) =>
      message.session_id === session_id && message.trace_id === trace_id && wasAtWork(message, occurred_at);
    const owner = named ?? messages.find(isAbout)?.message_id;
    parts.get(owner ?? '')?.events.push(event);
  }
  for (const dispatch of details.dispatches) parts.get(dispatch.message_id)?.dispatches.push(dispatch);
  for (const request of details.requests) parts.get(request.message_id)?.requests.push(request);
  for (const span of details.recorded) parts.get(span.message_id)?.recorded.push(span);
  return new Map(
    messages.map((message) => [
      message.message_id,
      messageSpans(message, parts.get(message.message_id) ?? emptyDetails()),
    ]),
  );
}

function emptyDetails(): MessageDetails {
  return { dispatches: [], events: [], requests: [], recorded: [] };
}
