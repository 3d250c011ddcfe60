import { expect, test } from 'vitest';
import { Agent, ToolError, type Turn, textOf, z } from '../../sdk/index.js';
import { SILENT_LOG } from '../../sdk/log.js';
import { run, runTool } from '../../sdk/testing/index.js';

function shop(): Agent {
  return new Agent({ type: 'shop' })
    .onMessage(async function* (task) {
      await task.status('thinking');
      yield 'You said: ';
      yield task.text;
    })
    .skill({ id: 'refund', input: z.object({ order: z.string() }) }, async (task, { order }) => {
      const sure = await task.ask({ kind: 'confirmation', title: 'Refund?', prompt: 'Refund?' });
      if (!sure.accepted) return 'Nothing was refunded.';
      const schema = z.object({ cents: z.int() });
      const form = await task.ask({ kind: 'form', title: 'How much?', prompt: 'How much?', schema });
      if (!form.accepted) return { state: 'failed', code: 'NO_AMOUNT', message: 'how much?' };
      const paid = await task.callTool('pay', { order, cents: form.data.cents });
      return {
        state: 'completed',
        parts: [{ kind: 'data', data: { paid } }],
        usage: { inputTokens: 1, outputTokens: 2 },
      };
    })
    .skill('asks-others', async (task) => {
      const { artifacts } = await task.client.send(task.text, { agentType: 'clerk' });
      const [last] = await task.history({ limit: 1 });
      return `${JSON.stringify(artifacts?.[0]?.parts)} after ${last?.text}`;
    })
    .skill('hangs', () => new Promise<string>(() => undefined))
    .tool('price', z.object({ item: z.string() }), async ({ item }, call) => ({
      item,
      cents: await call.callTool('rate', { item }),
    }));
}

test('a message is answered without a platform', async () => {
  const ended = await run(shop(), 'hi');
  expect(ended).toMatchObject({ state: 'completed', text: 'You said: hi', pieces: ['You said: ', 'hi'] });
  expect(ended.statuses).toEqual(['thinking']);
});

test('humans answer, and tools of others give what the test says', async () => {
  const pay = ({ cents }: { cents: number }) => cents + 1;
  const refund = { skillId: 'refund', args: { order: 'A-17' }, tools: { pay } };
  const paid = await run(shop(), '', { ...refund, answers: [true, { cents: 250 }] });
  expect(paid.data(z.object({ paid: z.int() }))).toEqual({ paid: 251 });
  expect(paid.toolCalls).toEqual([{ tool: 'pay', args: { order: 'A-17', cents: 250 } }]);
  expect(paid.questions.map(({ title }) => title)).toEqual(['Refund?', 'How much?']);
  expect(paid.usage).toEqual({ inputTokens: 1, outputTokens: 2 });
  expect((await run(shop(), '', { ...refund, answers: ['declined'] })).text).toBe('Nothing was refunded.');
});

test('a message that fails or still waits says why', async () => {
  const waiting = await run(shop(), '', { skillId: 'refund', args: { order: 'A-17' } });
  expect(waiting.state).toBe('input-required');
  expect(() => waiting.text).toThrow(expect.objectContaining({ name: 'TaskNotEndedError', text: 'Refund?' }));
  const failed = await run(shop(), '', { skillId: 'refund', args: { order: 'A-17' }, answers: [true, false] });
  expect(failed.error).toEqual({ code: 'NO_AMOUNT', message: 'how much?', retryable: false });
  expect(() => failed.text).toThrow(expect.objectContaining({ name: 'TaskFailedError', code: 'NO_AMOUNT' }));
  expect(JSON.parse(JSON.stringify(failed))).toMatchObject({ state: 'failed', error: { code: 'NO_AMOUNT' } });
  expect((await run(shop(), '', { skillId: 'refund', args: { order: 1 } })).error?.code).toBe('INVALID_DISPATCH');
  expect((await run(shop(), '', { skillId: 'hangs', deadlineMs: 1 })).error?.code).toBe('DEADLINE_EXCEEDED');
});

test('other agents and the history are the test’s', async () => {
  const turn = (messageId: string, text: string): Turn => {
    return { messageId, text, role: 'user', parts: [], state: 'completed', sentAt: '' };
  };
  const history = [turn('msg_1', 'one'), turn('msg_2', 'two')];
  const agents = { clerk: (input: unknown) => `clerk: ${input}` };
  const { text } = await run(shop(), 'hi', { skillId: 'asks-others', agents, history });
  expect(text).toBe('[{"kind":"text","text":"clerk: hi"}] after two');
  expect((await run(shop(), 'hi', { skillId: 'asks-others' })).error?.message).toContain('no agent clerk');
});

test('a tool is called without a platform', async () => {
  expect(await runTool(shop(), 'price', { item: 'tea' }, { tools: { rate: 250 } })).toEqual({
    item: 'tea',
    cents: 250,
  });
  await expect(runTool(shop(), 'price', { item: 1 })).rejects.toMatchObject({ code: 'BAD_REQUEST' });
  await expect(runTool(shop(), 'none')).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' });
  await expect(runTool(shop(), 'price', { item: 'tea' })).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' });
});

test('an answer may have text, parts and usage at once, and artifacts get an id by themselves', async () => {
  const usage = { inputTokens: 1, outputTokens: 2 };
  const agent = new Agent({ type: 'shop' })
    .onMessage(() => ({ state: 'completed', text: 'Tea', parts: [{ kind: 'data', data: { cents: 250 } }], usage }))
    .skill('files', () => ({ state: 'completed', artifacts: [{ parts: [] }, { artifactId: 'own', parts: [] }] }));
  const ended = await run(agent);
  expect({ text: ended.text, data: ended.data(), usage: ended.usage }).toEqual({
    text: 'Tea',
    data: { cents: 250 },
    usage,
  });
  const { artifacts } = await run(agent, '', { skillId: 'files' });
  expect(artifacts.map(({ artifactId }) => artifactId)).toEqual(['artifact-1', 'own']);
});

test('a tool call or a search that nobody awaits is logged when it fails, and does not end the process', async () => {
  const logged: object[] = [];
  const log = { ...SILENT_LOG, warn: (fields: object) => logged.push(fields) };
  const agent = new Agent({ type: 'hasty' }).onMessage(async (task) => {
    void task.callTool('audit.log');
    void task.search('docs', 'tea');
    return `${await task.callTool('price').catch((error: Error) => `caught: ${error.message}`)}`;
  });
  expect((await run(agent, 'hi', { log })).text).toMatch(/^caught: the test has no tool price/);
  const error = expect.stringContaining('the test has no tool');
  expect(logged).toEqual([{ tool: 'audit.log', dispatch_id: 'dsp_1', error }, { error }]);
});

test.each<[string, (agent: Agent) => unknown, RegExp]>([
  ['a skill without a handler', (agent) => agent.skill('a', undefined as never), /handler is not a function/],
  ['an unknown option', (agent) => agent.skill({ id: 'a', inputs: {} } as never, () => 'x'), /no option `inputs`/],
  ['no schema', (agent) => agent.skill({ id: 'a', input: { order: 'string' } }, () => 'x'), /is no JSON Schema/],
  ['a tool without a schema', (agent) => agent.tool('t', (() => 1) as never, undefined as never), /tool\('t', schema/],
  ['an unknown event', (agent) => agent.on('connect' as never, () => 1), /no event connect/],
  ['no type', () => new Agent({} as never), /needs a `type`/],
  ['a limit below 0', () => new Agent({ type: 'x', maxConcurrentTasks: -1 }), /maxConcurrentTasks is a whole number/],
  ['a limit that is text', () => new Agent({ type: 'x', maxConcurrentTasks: '4' as never }), /not '4'/],
  ['a promise of a task', () => textOf(Promise.resolve() as never), /textOf\(await/],
  ['an unknown skill of a run', (agent) => run(agent, 'x', { skillId: 'typo' }), /no skill typo: it has none/],
  ['an unknown option of a run', (agent) => run(agent, 'x', { skill: 'a' } as never), /no option `skill`/],
])('%s is refused when it is given', async (_what, given, problem) => {
  await expect(async () => given(new Agent({ type: 'strict' }))).rejects.toThrow(problem);
});

test.each([
  ['APPROVAL_REJECTED', 0],
  ['CANCELED', 0],
  ['TOO_BIG', 1],
])('a tool call that ends with %s and is not caught is logged %d times as a failure', async (code, times) => {
  const logged: object[] = [];
  const log = { ...SILENT_LOG, error: (fields: object) => logged.push(fields) };
  const pay = () => {
    throw new ToolError('no', { code });
  };
  const agent = new Agent({ type: 'payer' }).onMessage(async (task) => `${await task.callTool('pay')}`);
  expect((await run(agent, 'x', { tools: { pay }, log })).state).toBe('failed');
  expect(logged).toHaveLength(times);
});
