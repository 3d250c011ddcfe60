import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

/** What the model says where it calls no tool. */
export const SAID = 'Hello from the model.';
const USAGE = {
  input_tokens: 7,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 3,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 10,
};

interface Asked {
  model: string;
  tools?: { name: string }[];
  input: { type?: string }[];
}

/**
 * OpenAI's Responses API, streamed, as far as frameworks use it for a text and a tool call. The model calls the tool `refund` once where it is
 * offered, else it says `SAID`.
 */
export async function answerAsOpenai(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const asked = JSON.parse(await text(request)) as Asked;
  const isCall =
    asked.tools?.some(({ name }) => name === 'refund') &&
    !asked.input.some(({ type }) => type === 'function_call_output');
  const item = isCall ? CALL : MESSAGE;
  const base = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: asked.model,
    output: [],
    status: 'in_progress',
  };
  const events = [
    { type: 'response.created', response: base },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item, ...EMPTY[item.type], status: 'in_progress' },
    },
    ...deltasOf(item),
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: { ...base, output: [item], status: 'completed', usage: USAGE } },
  ];
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  events.forEach((event, sequence_number) => {
    response.write(`event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`);
  });
  response.end();
}

const MESSAGE = {
  type: 'message',
  id: 'item_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: SAID, annotations: [], logprobs: [] }],
} as const;
const CALL = {
  type: 'function_call',
  id: 'item_1',
  call_id: 'call_1',
  name: 'refund',
  status: 'completed',
  arguments: '{"order":"o-1"}',
} as const;
/** The members of an item that are empty when it begins. */
const EMPTY = { message: { content: [] }, function_call: { arguments: '' } };

function deltasOf(item: typeof MESSAGE | typeof CALL) {
  const at = { item_id: item.id, output_index: 0 };
  if (item.type === 'function_call')
    return [{ type: 'response.function_call_arguments.delta', ...at, delta: item.arguments }];
  return SAID.split(/(?= )/).map((delta) => ({
    type: 'response.output_text.delta',
    ...at,
    content_index: 0,
    delta,
    logprobs: [],
  }));
}
