import { Agent } from '@mastra/core/agent';
import { MockMemory } from '@mastra/core/memory';
import { MastraLanguageModelV2Mock } from '@mastra/core/test-utils/llm-mock';
import { createTool } from '@mastra/core/tools';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { type MastraOptions, mastraHandler } from '../mastra.js';
import { joined, resultOf } from './joined.js';

type ModelStream = Awaited<ReturnType<MastraLanguageModelV2Mock['doStream']>>['stream'];
type Chunk = ModelStream extends ReadableStream<infer Part> ? Part : never;
const finish = (finishReason: 'stop' | 'tool-calls'): Chunk => ({
  type: 'finish',
  finishReason,
  usage: { inputTokens: 6, outputTokens: 2, totalTokens: 8 },
});
const text = (...deltas: string[]): Chunk[] => [
  { type: 'text-start', id: '1' },
  ...deltas.map((delta): Chunk => ({ type: 'text-delta', id: '1', delta })),
  { type: 'text-end', id: '1' },
];
const call: Chunk = { type: 'tool-call', toolCallId: 'c1', toolName: 'stock', input: '{"item":"tea"}' };

/** A model whose calls stream these chunks, one list after the other; one that is called more often never ends. */
function modelOf(...calls: Chunk[][]) {
  let made = 0;
  const doStream: MastraLanguageModelV2Mock['doStream'] = async ({ abortSignal }) => {
    const chunks = calls[made++];
    const start = (controller: ReadableStreamDefaultController<Chunk>): void => {
      for (const chunk of [{ type: 'stream-start', warnings: [] } as Chunk, ...(chunks ?? [])])
        controller.enqueue(chunk);
      if (chunks) controller.close();
      else abortSignal?.addEventListener('abort', () => controller.error(abortSignal.reason));
    };
    return { stream: new ReadableStream({ start }) };
  };
  return new MastraLanguageModelV2Mock({ modelId: 'mock-1', doStream });
}

/** An agent of Mastra with this model and a tool, joined to a mesh. */
function shop(
  model: MastraLanguageModelV2Mock,
  { requireApproval = false, ...options }: MastraOptions & { requireApproval?: boolean } = {},
) {
  const stock = createTool({
    id: 'stock',
    description: 'How much there is',
    inputSchema: z.object({ item: z.string() }),
    requireApproval,
    execute: async () => ({ left: 3 }),
  });
  const agent = new Agent({
    id: 'shop',
    name: 'Shop',
    instructions: 'You sell tea.',
    model,
    tools: { stock },
    memory: new MockMemory(),
    maxRetries: 0,
  });
  return joined(mastraHandler(agent, options));
}

test('text is the answer, a tool call is a status, and the tokens of all steps are the usage', async () => {
  const model = modelOf([call, finish('tool-calls')], [...text('Hel', 'lo'), finish('stop')]);
  const mesh = await shop(model, { model: 'mock-1' });
  const dispatch = mesh.dispatch('hi');
  expect(await resultOf(mesh, dispatch)).toMatchObject({
    result: { artifacts: [{ parts: [{ kind: 'text', text: 'Hello' }] }] },
    usage: { input_tokens: 12, output_tokens: 4, model: 'mock-1' },
  });
  expect(mesh.of('dispatch_chunk', dispatch)[0]?.payload).toMatchObject({ status_text: 'Calling stock' });
  expect(model.doStreamCalls[1]?.prompt).toMatchObject([
    { role: 'system', content: 'You sell tea.' },
    { role: 'user', content: [{ type: 'text', text: 'hi' }] },
    { role: 'assistant', content: [{ type: 'tool-call', toolName: 'stock' }] },
    { role: 'tool', content: [{ type: 'tool-result', toolName: 'stock' }] },
  ]);
});

test('the session is the thread of the memory', async () => {
  const model = modelOf([...text('Hello'), finish('stop')], [...text('Bye'), finish('stop')]);
  const mesh = await shop(model);
  await resultOf(mesh, mesh.dispatch('hi'));
  await resultOf(mesh, mesh.dispatch('thanks'));
  expect(model.doStreamCalls[1]?.prompt).toMatchObject([
    { role: 'system' },
    { role: 'user', content: [{ text: 'hi' }] },
    { role: 'assistant', content: [{ text: 'Hello' }] },
    { role: 'user', content: [{ text: 'thanks' }] },
  ]);
});

test('input and options are those of the handler', async () => {
  const model = modelOf([...text('ok'), finish('stop')]);
  const mesh = await shop(model, {
    input: (task) => `${task.text}!`,
    options: () => ({ instructions: 'You are brief.' }),
  });
  await resultOf(mesh, mesh.dispatch('hi'));
  expect(model.doStreamCalls[0]?.prompt).toMatchObject([
    { role: 'system', content: 'You are brief.' },
    { role: 'user', content: [{ text: 'hi!' }] },
  ]);
});

test('an error of the model fails the message', async () => {
  const model = new MastraLanguageModelV2Mock({ doStream: () => Promise.reject(new Error('no quota')) });
  const mesh = await shop(model);
  const failed = await mesh.frame('error', mesh.dispatch('go'));
  expect(failed.payload).toMatchObject({ code: 'HANDLER_ERROR', message: expect.stringContaining('no quota') });
});

test('a tool call that Mastra wants approved fails the message', async () => {
  const mesh = await shop(modelOf([call, finish('tool-calls')]), { requireApproval: true });
  const failed = await mesh.frame('error', mesh.dispatch('go'));
  expect(failed.payload).toMatchObject({ code: 'HANDLER_ERROR', message: expect.stringContaining('stock waits') });
});

test('a canceled task aborts the model', async () => {
  const model = modelOf();
  const mesh = await shop(model);
  const dispatch = mesh.dispatch('go');
  await vi.waitFor(() => expect(model.doStreamCalls).toHaveLength(1));
  mesh.send('error', { code: 'CANCELED', message: 'canceled', retryable: false }, { inReplyTo: dispatch });
  await vi.waitFor(() => expect(model.doStreamCalls[0]?.abortSignal).toHaveProperty('aborted', true));
});
