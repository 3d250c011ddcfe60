import { Agent, type Model, type ModelRequest, Runner, tool, Usage } from '@openai/agents';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { openaiHandler, type RunStore } from '../openai-agents.js';
import { answered, joined, resultOf } from './joined.js';

type Item = { text: string } | { call: string; args: object };
/** A model that answers each request with the next items. */
class ScriptedModel implements Model {
  readonly requests: ModelRequest[] = [];
  constructor(private readonly answers: Item[][]) {}

  getResponse = () => Promise.reject(new Error('the adapter streams'));

  async *getStreamedResponse(request: ModelRequest): ReturnType<Model['getStreamedResponse']> {
    const items = this.answers[this.requests.push(request) - 1] ?? [];
    for (const item of items) if ('text' in item) yield { type: 'output_text_delta', delta: item.text };
    const output = items.map((item, index) =>
      'text' in item
        ? {
            type: 'message' as const,
            role: 'assistant' as const,
            status: 'completed' as const,
            content: [{ type: 'output_text' as const, text: item.text }],
          }
        : {
            type: 'function_call' as const,
            callId: `c${index}`,
            name: item.call,
            status: 'completed' as const,
            arguments: JSON.stringify(item.args),
          },
    );
    const usage = new Usage({ inputTokens: 10, outputTokens: 2, totalTokens: 12 });
    yield { type: 'response_done', response: { id: 'r', output, usage } };
  }
}
const runner = new Runner({ tracingDisabled: true });
const shop = (model: Model, refund = vi.fn(() => 'refunded')) => ({
  refund,
  agent: new Agent({
    name: 'Shop',
    model,
    tools: [
      tool({
        name: 'refund',
        description: 'Refunds an order',
        parameters: z.object({ order: z.string() }),
        needsApproval: true,
        execute: refund,
      }),
    ],
  }),
});
function memory(): RunStore & { size(): number } {
  const runs = new Map<string, string>();
  return {
    load: async (id) => runs.get(id),
    save: async (id, state) => runs.set(id, state),
    delete: async (id) => runs.delete(id),
    size: () => runs.size,
  };
}

test('text streams, and the tokens of all calls of the model are the usage', async () => {
  const model = new ScriptedModel([[{ text: 'Hello' }]]);
  const mesh = await joined(openaiHandler(new Agent({ name: 'Shop', model }), { runner }));
  const dispatch = mesh.dispatch('hi');
  expect(await resultOf(mesh, dispatch)).toMatchObject({
    chunk_count: 1,
    result: { artifacts: [{ parts: [{ kind: 'text', text: 'Hello' }] }] },
    usage: { input_tokens: 10, output_tokens: 2 },
  });
  expect(JSON.stringify(model.requests[0]?.input)).toContain('hi');
});

test('a tool with needsApproval asks; the answers of humans decide, in another process too', async () => {
  const calls = [
    { call: 'refund', args: { order: 'o-1' } },
    { call: 'refund', args: { order: 'o-2' } },
  ];
  const store = memory();
  const first = shop(new ScriptedModel([calls]));
  const mesh = await joined(openaiHandler(first.agent, { runner, store }));
  expect(await resultOf(mesh, mesh.dispatch('refund both'))).toMatchObject({
    status: {
      state: 'input-required',
      input_request: { kind: 'approval', tool: 'refund', arguments: { order: 'o-1' } },
    },
    usage: { input_tokens: 10 },
  });
  const model = new ScriptedModel([[{ text: 'One of two.' }]]);
  const second = shop(model);
  const elsewhere = await joined(openaiHandler(second.agent, { runner, store }));
  const yes = { kind: 'approval', title: 'Call refund?', resolution: 'approved' };
  const no = { ...yes, resolution: 'rejected', comment: 'too late' };
  expect(await resultOf(elsewhere, elsewhere.dispatch('refund both', answered(yes)))).toMatchObject({
    status: { input_request: { arguments: { order: 'o-2' } } },
  });
  expect(second.refund).not.toHaveBeenCalled();
  const done = await resultOf(elsewhere, elsewhere.dispatch('refund both', answered(yes, no)));
  expect(done).toMatchObject({
    result: { artifacts: [{ parts: [{ text: 'One of two.' }] }] },
    usage: { input_tokens: 10, output_tokens: 2 },
  });
  expect(second.refund).toHaveBeenCalledOnce();
  expect(second.refund).toHaveBeenCalledWith({ order: 'o-1' }, expect.anything(), expect.anything());
  expect(JSON.stringify(model.requests[0]?.input)).toContain('too late');
  expect(store.size()).toBe(0);
});

test('without a store a call that needs approval fails and says what is missing', async () => {
  const { agent } = shop(new ScriptedModel([[{ call: 'refund', args: { order: 'o-1' } }]]));
  const mesh = await joined(openaiHandler(agent, { runner }));
  const failed = await mesh.frame('error', mesh.dispatch('refund'));
  expect(failed.payload).toMatchObject({ code: 'HANDLER_ERROR', message: expect.stringContaining('no store') });
});

test('an output type is answered as data; an error of the model fails the message', async () => {
  const agent = new Agent({
    name: 'Shop',
    model: new ScriptedModel([[{ text: '{"left":3}' }]]),
    outputType: z.object({ left: z.number() }),
  });
  const mesh = await joined(openaiHandler(agent, { runner }));
  expect(await resultOf(mesh, mesh.dispatch('tea?'))).toMatchObject({
    result: { artifacts: [{ parts: [{ kind: 'data', data: { left: 3 } }] }] },
  });
  const broken: Model = {
    getResponse: () => Promise.reject(new Error('no quota')),
    // biome-ignore lint/correctness/useYield: a model that fails at once
    getStreamedResponse: async function* () {
      throw new Error('no quota');
    },
  };
  const failing = await joined(openaiHandler(new Agent({ name: 'Shop', model: broken }), { runner }));
  const failed = await failing.frame('error', failing.dispatch('hi'));
  expect(failed.payload).toMatchObject({ code: 'HANDLER_ERROR', message: expect.stringContaining('no quota') });
});

test('a canceled task aborts the run', async () => {
  let signal: AbortSignal | undefined;
  const model: Model = {
    getResponse: () => Promise.reject(new Error('the adapter streams')),
    getStreamedResponse: async function* (request) {
      signal = request.signal;
      yield { type: 'output_text_delta', delta: 'begun' };
      await new Promise((_, reject) => request.signal?.addEventListener('abort', () => reject(new Error('aborted'))));
    },
  };
  const mesh = await joined(openaiHandler(new Agent({ name: 'Shop', model }), { runner }));
  const dispatch = mesh.dispatch('go');
  await mesh.frame('dispatch_chunk', dispatch);
  mesh.send('error', { code: 'CANCELED', message: 'canceled', retryable: false }, { inReplyTo: dispatch });
  await vi.waitFor(() => expect(signal?.aborted).toBe(true));
  expect(mesh.of('dispatch_result', dispatch)).toEqual([]);
});
