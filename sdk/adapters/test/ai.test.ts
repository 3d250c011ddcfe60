import { type LanguageModelUsage, simulateReadableStream, stepCountIs, streamText } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { MessageHandler } from '../../index.js';
import { aiHandler, fleetTool } from '../ai.js';
import { joined, resultOf } from './joined.js';

type Chunk =
  Awaited<ReturnType<MockLanguageModelV3['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never;
const tokens = (input: number, output: number) => ({
  inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: output, text: output, reasoning: 0 },
});
const finish = (reason: 'stop' | 'tool-calls', input: number, output: number): Chunk => ({
  type: 'finish',
  finishReason: { unified: reason, raw: reason },
  usage: tokens(input, output),
});
const text = (...deltas: string[]): Chunk[] => [
  { type: 'text-start', id: '1' },
  ...deltas.map((delta): Chunk => ({ type: 'text-delta', id: '1', delta })),
  { type: 'text-end', id: '1' },
];
/** A model whose calls stream these chunks, one list after the other. */
function modelOf(...calls: Chunk[][]) {
  let made = 0;
  return new MockLanguageModelV3({
    modelId: 'mock-1',
    doStream: async () => ({ stream: simulateReadableStream({ chunks: calls[made++] ?? [] }) }),
  });
}

test('text streams as it comes, and the tokens of the model are the usage', async () => {
  const model = modelOf([...text('Hel', 'lo'), finish('stop', 7, 2)]);
  const mesh = await joined(aiHandler((task) => streamText({ model, prompt: task.text, abortSignal: task.signal })));
  const dispatch = mesh.dispatch('hi');
  expect(await resultOf(mesh, dispatch)).toMatchObject({
    chunk_count: 2,
    result: { artifacts: [{ parts: [{ kind: 'text', text: 'Hello' }] }] },
    usage: { input_tokens: 7, output_tokens: 2, model: 'mock-1' },
  });
  expect(model.doStreamCalls[0]?.prompt).toMatchObject([{ role: 'user', content: [{ type: 'text', text: 'hi' }] }]);
});

test('a tool of the fleet is called through the platform, shown as status, and its result goes back to the model', async () => {
  const call: Chunk = { type: 'tool-call', toolCallId: 'c1', toolName: 'stock', input: '{"item":"tea"}' };
  const model = modelOf([call, finish('tool-calls', 5, 1)], [...text('12 left'), finish('stop', 9, 3)]);
  const mesh = await joined(
    aiHandler((task) =>
      streamText({
        model,
        prompt: task.text,
        stopWhen: stepCountIs(3),
        abortSignal: task.signal,
        tools: {
          stock: fleetTool(task, 'warehouse.stock', {
            description: 'How much there is',
            inputSchema: z.object({ item: z.string() }),
            target: { agentType: 'warehouse' },
          }),
        },
      }),
    ),
  );
  const dispatch = mesh.dispatch('tea?');
  const called = await mesh.frame('tool_call');
  expect(called.payload).toMatchObject({
    tool: 'warehouse.stock',
    arguments: { item: 'tea' },
    target: { agent_type: 'warehouse' },
    dispatch_id: `dsp_${dispatch}`,
  });
  mesh.send('tool_result', { ok: true, result: { left: 12 } }, { inReplyTo: called.id });
  expect(await resultOf(mesh, dispatch)).toMatchObject({
    result: { artifacts: [{ parts: [{ text: '12 left' }] }] },
    usage: { input_tokens: 14, output_tokens: 4 },
  });
  expect(mesh.of('dispatch_chunk', dispatch)[0]?.payload).toMatchObject({ status_text: 'Calling stock' });
  expect(JSON.stringify(model.doStreamCalls[1]?.prompt)).toContain('"left":12');
});

test('a canceled task aborts the model', async () => {
  let modelSignal: AbortSignal | undefined;
  const model = new MockLanguageModelV3({
    doStream: async ({ abortSignal }) => {
      modelSignal = abortSignal;
      const stream = new ReadableStream<Chunk>({
        start: (controller) => {
          for (const chunk of text('begun').slice(0, 2)) controller.enqueue(chunk);
        },
      });
      return { stream };
    },
  });
  const mesh = await joined(aiHandler((task) => streamText({ model, prompt: task.text, abortSignal: task.signal })));
  const dispatch = mesh.dispatch('go');
  await mesh.frame('dispatch_chunk', dispatch);
  mesh.send('error', { code: 'CANCELED', message: 'canceled', retryable: false }, { inReplyTo: dispatch });
  await vi.waitFor(() => expect(modelSignal?.aborted).toBe(true));
  expect(mesh.of('dispatch_result', dispatch)).toEqual([]);
});

type Start = () => ReturnType<typeof streamText>;
const handlers: Record<string, (start: Start) => MessageHandler> = {
  'returned from a handler': (start) => start,
  'in aiHandler': aiHandler,
};
test.each(Object.entries(handlers))('a stream %s has its usage', async (_, handler) => {
  const model = modelOf([...text('Hel', 'lo'), finish('stop', 7, 2)]);
  const mesh = await joined(handler(() => streamText({ model, prompt: 'x' })));
  expect(await resultOf(mesh, mesh.dispatch('hi'))).toMatchObject({
    result: { artifacts: [{ parts: [{ kind: 'text', text: 'Hello' }] }] },
    usage: { input_tokens: 7, output_tokens: 2, model: 'mock-1' },
  });
});

test.each(Object.entries(handlers))(
  'an error of a stream %s fails the message, also after text',
  async (_, handler) => {
    const model = modelOf([...text('half'), { type: 'error', error: new Error('no quota') }]);
    const mesh = await joined(handler(() => streamText({ model, prompt: 'x', onError: () => undefined })));
    const failed = await mesh.frame('error', mesh.dispatch('go'));
    expect(failed.payload).toMatchObject({ code: 'HANDLER_ERROR', message: 'no quota' });
  },
);

test('usage that the model does not tell is left out', async () => {
  const unknown = { inputTokens: undefined, outputTokens: undefined } as LanguageModelUsage;
  async function* fullStream() {
    yield { type: 'text-delta', text: 'x' };
    yield { type: 'finish', totalUsage: unknown };
  }
  const mesh = await joined(aiHandler(() => ({ fullStream: fullStream() })));
  expect(await resultOf(mesh, mesh.dispatch('go'))).not.toHaveProperty('usage');
});
