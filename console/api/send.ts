import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { StreamEvent } from '../../contracts/a2a/a2a.js';
import type { Part } from '../../contracts/a2a/parts.js';
import { ApiError, postForStream } from './call.js';

/** A message as `message/stream` of A2A 0.3 takes it. */
export interface Sending {
  messageId: string;
  parts: Part[];
  /** The session; absent, the message opens one. */
  contextId?: string;
  agentType?: string;
}

/** The body of the call that sends a message. */
export function sendBody({ agentType, ...message }: Sending) {
  const metadata = agentType === undefined ? {} : { metadata: { agent_type: agentType } };
  const params = { message: { kind: 'message', role: 'user', ...message }, ...metadata };
  return { jsonrpc: '2.0', id: 1, method: 'message/stream', params };
}

/** The body of the call that follows a message from where it stands. */
export const followBody = (id: string) => ({ jsonrpc: '2.0', id: 1, method: 'tasks/resubscribe', params: { id } });

interface RpcAnswer {
  result?: StreamEvent;
  error?: { message: string; data?: { code?: string } };
}

function resultOf({ result, error }: RpcAnswer): StreamEvent {
  if (result) return result;
  throw new ApiError(200, error?.data?.code ?? 'BAD_REQUEST', error?.message ?? 'The answer is empty.');
}

/** The events of a call of `/send` that streams, as they come. @throws ApiError also where the stream breaks */
export async function* streamSend(body: object): AsyncGenerator<StreamEvent> {
  const response = await postForStream('/send', body);
  if (!response.headers.get('content-type')?.startsWith('text/event-stream') || !response.body) {
    yield resultOf((await response.json()) as RpcAnswer);
    return;
  }
  const reader = response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())
    .getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw new ApiError(0, 'AWAY', 'The stream broke.');
    });
    if (done) return;
    yield resultOf(JSON.parse(value.data) as RpcAnswer);
  }
}
