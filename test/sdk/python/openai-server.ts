import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { httpServer } from '../../runtime/loopback-server.js';

/** One answer of the model: its text, or a call of a tool. */
export type ModelTurn = string | { call: string; args: object };

/** A server that speaks as much of OpenAI's Responses API as a streaming agent needs, with scripted answers. */
export class OpenAiServer {
  /** The bodies of the requests, in order. */
  readonly requests: { model: string; input: unknown }[] = [];
  url = '';

  static async start(turns: ModelTurn[]): Promise<OpenAiServer> {
    const openai = new OpenAiServer();
    const { url } = await httpServer(async (request, response) => {
      if (request.url !== '/v1/responses') return response.writeHead(404).end();
      const turn = turns[openai.requests.push(JSON.parse(await text(request))) - 1];
      if (turn === undefined) return response.writeHead(400).end('{"error":{"message":"no further turn"}}');
      return answer(response, turn);
    });
    openai.url = `${url}/v1`;
    return openai;
  }
}

function answer(response: ServerResponse, turn: ModelTurn): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  let sequence_number = 0;
  const send = (type: string, event: object) => {
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, ...event })}\n\n`);
    sequence_number += 1;
  };
  const of = { item_id: 'item_1', output_index: 0, content_index: 0, logprobs: [] };
  if (typeof turn === 'string')
    for (const word of turn.split(/(?<= )/)) send('response.output_text.delta', { ...of, delta: word });
  const item =
    typeof turn === 'string'
      ? {
          type: 'message',
          role: 'assistant',
          content: [{ type: 'output_text', text: turn, annotations: [], logprobs: [] }],
        }
      : { type: 'function_call', call_id: 'call_1', name: turn.call, arguments: JSON.stringify(turn.args) };
  send('response.completed', {
    response: {
      id: 'resp_1',
      object: 'response',
      created_at: 0,
      model: 'scripted',
      parallel_tool_calls: false,
      tool_choice: 'auto',
      tools: [],
      output: [{ id: 'item_1', status: 'completed', ...item }],
      usage: {
        input_tokens: 3,
        output_tokens: 2,
        total_tokens: 5,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens_details: { reasoning_tokens: 0 },
      },
    },
  });
  response.end();
}
