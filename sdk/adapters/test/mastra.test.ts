import { expect, test, vi } from 'vitest';
import { type MastraAgent, mastraHandler } from '../mastra.js';
import { joined, resultOf } from './joined.js';

/**
 * A stand-in for a Mastra agent, which does not install on Node 20: the chunks are those that Mastra 1.71 streamed for a tool call and a text.
 */
function agentOf(chunks: { type: string; payload?: object }[], totalUsage = { inputTokens: 12, outputTokens: 3 }) {
  const stream = vi.fn(async (_messages: string, { abortSignal }: Record<string, unknown>) => ({
    fullStream: (async function* () {
      yield* chunks;
      if (chunks.length > 0) return;
      await new Promise((resolve) => (abortSignal as AbortSignal).addEventListener('abort', resolve));
      yield { type: 'abort', payload: {} };
    })(),
    get totalUsage() {
      return chunks.some(({ type }) => type === 'error')
        ? Promise.reject(new Error('no usage'))
        : Promise.resolve(totalUsage);
    },
  }));
  return { stream } satisfies MastraAgent;
}

test('text is the answer, a tool call is a status, and the session is the thread', async () => {
  const agent = agentOf([
    { type: 'start', payload: { id: 'shop' } },
    { type: 'step-start', payload: {} },
    { type: 'tool-call', payload: { toolCallId: 'c1', toolName: 'stock', args: { item: 'tea' } } },
    { type: 'tool-result', payload: { toolCallId: 'c1', toolName: 'stock', result: { left: 3 } } },
    { type: 'text-delta', payload: { id: '1', text: 'Hel' } },
    { type: 'text-delta', payload: { id: '1', text: 'lo' } },
    { type: 'finish', payload: {} },
  ]);
  const mesh = await joined(mastraHandler(agent, { model: 'mock-1' }));
  const dispatch = mesh.dispatch('hi');
  expect(await resultOf(mesh, dispatch)).toMatchObject({
    result: { artifacts: [{ parts: [{ kind: 'text', text: 'Hello' }] }] },
    usage: { input_tokens: 12, output_tokens: 3, model: 'mock-1' },
  });
  expect(mesh.of('dispatch_chunk', dispatch)[0]?.payload).toMatchObject({ status_text: 'Calling stock' });
  expect(agent.stream).toHaveBeenCalledWith(
    'hi',
    expect.objectContaining({ memory: expect.objectContaining({ thread: 'ses_1' }) }),
  );
});

test.each([
  ['an error', { type: 'error', payload: { error: new Error('no quota') } }, 'no quota'],
  ['a call that waits for approval', { type: 'tool-call-approval', payload: { toolName: 'refund' } }, 'refund waits'],
])('%s fails the message', async (_what, chunk, message) => {
  const mesh = await joined(mastraHandler(agentOf([chunk])));
  const failed = await mesh.frame('error', mesh.dispatch('go'));
  expect(failed.payload).toMatchObject({ code: 'HANDLER_ERROR', message: expect.stringContaining(message) });
});

test('a canceled task aborts the agent', async () => {
  const agent = agentOf([]);
  const mesh = await joined(mastraHandler(agent));
  const dispatch = mesh.dispatch('go');
  await vi.waitFor(() => expect(agent.stream).toHaveBeenCalled());
  mesh.send('error', { code: 'CANCELED', message: 'canceled', retryable: false }, { inReplyTo: dispatch });
  await vi.waitFor(() => expect(agent.stream.mock.calls[0]?.[1].abortSignal).toHaveProperty('aborted', true));
});
