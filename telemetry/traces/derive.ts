import type { MessageDetails, MessageFacts } from './facts.js';
import { messageSpans } from './message-spans.js';
import type { Span } from './span.js';

/** The spans of messages, by their ids. */
export function spansOfMessages(messages: readonly MessageFacts[], details: MessageDetails): Map<string, Span[]> {
  const parts = new Map(messages.map(({ message_id }) => [message_id, emptyDetails()]));
  for (const event of details.events) parts.get(event.message_id)?.events.push(event);
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
