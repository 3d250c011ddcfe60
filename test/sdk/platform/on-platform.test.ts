import { expect, test } from 'vitest';
import { textOf } from '../../../contracts/a2a/text.js';
import { type Task, type ToolError, z } from '../../../sdk/index.js';
import { sharedPlatform } from '../../setup/platform/shared-platform.js';
import { gate, until } from '../../setup/until.js';
import { join, sdkOn } from './fixture.js';

const { platform } = await sharedPlatform();
const { caller, agentOf } = sdkOn(platform.devJson);

const answerOf = (task: Task) => (task.artifacts ?? []).map((artifact) => textOf(artifact.parts)).join('');
const to = (
  agentType: string,
  more: { skillId?: string; args?: Record<string, unknown>; metadata?: { tool: string } } = {},
) => ({ agentType, ...more });

test('a hosted agent is registered, streams, asks a human and gets the answer, and leaves', async () => {
  const agent = agentOf('clerk').onMessage(async function* (task) {
    if (!task.resolution) return task.ask({ kind: 'confirmation', title: 'Sell?', prompt: `Sell ${task.text}?` });
    yield `${task.resolution.resolution}: `;
    yield task.text;
  });
  await agent.serve();
  const client = caller();
  const asked = await client.send('tea', to('clerk'));
  expect(asked.status.state).toBe('input-required');
  expect(textOf(asked.status.message?.parts ?? [])).toBe('Sell tea?');
  const [waiting] = (await client.messages.pending({ sessionId: asked.contextId })).messages;
  expect(waiting?.inputRequest).toMatchObject({ title: 'Sell?', prompt: 'Sell tea?' });
  await client.messages.resolve(asked.id, { resolution: 'confirmed' });
  const message = await client.messages.waitFor(asked.id, { until: 'terminal' });
  expect(message).toMatchObject({ state: 'completed', assistantOutput: 'confirmed: tea' });
  await agent.close();
  const instance = () => client.post('/agents/get_by_id', { instance_id: 'clerk-1' });
  expect(((await instance()).agent as { status: string }).status).toBe('draining');
});

test.each(['connected', 'hosted'])(
  'a skill of a %s agent is called with args, else with the data of the message',
  async (mode) => {
    const type = `adder-${mode}`;
    const input = z.object({ a: z.number(), b: z.number() });
    const agent = agentOf(type).skill(
      { id: 'sum', input },
      (task, { a, b }) => `${a + b} ${JSON.stringify(task.args)}`,
    );
    await join(agent, mode);
    const client = caller();
    const data = [{ kind: 'data' as const, data: { a: 1, b: 1 } }];
    const sum = async (more: object) => answerOf(await client.send(data, to(type, { skillId: 'sum', ...more })));
    expect(await sum({ args: { a: 2, b: 3 } })).toBe('5 {"a":2,"b":3}');
    expect(await sum({})).toBe('2 undefined');
  },
);

test('connected and hosted agents call each other’s tools, and a cancel reaches the one that is called', async () => {
  const reached = gate();
  const reasons: string[] = [];
  await agentOf('warehouse')
    .tool('stock', z.object({ item: z.string() }), async ({ item }, call) => {
      if (item !== 'slow') return { item, left: 7, for: call.caller.agentType };
      reached.open();
      await new Promise<void>((resolve) => call.signal.addEventListener('abort', () => resolve(), { once: true }));
      reasons.push((call.signal.reason as ToolError).code);
      return null;
    })
    .connect();
  await agentOf('desk')
    .tool('greet', z.object({ name: z.string() }), async ({ name }, call) => {
      return { text: `Hello ${name}`, stock: await call.callTool('stock', { item: name }) };
    })
    .serve();
  await agentOf('manager')
    .onMessage(async (task) =>
      JSON.stringify(
        await task.callTool(task.metadata.tool as string, {
          [task.metadata.tool === 'greet' ? 'name' : 'item']: task.text,
        }),
      ),
    )
    .connect();
  const client = caller();
  const greeted = await client.send('Ann', to('manager', { metadata: { tool: 'greet' } }));
  expect(JSON.parse(answerOf(greeted))).toEqual({ text: 'Hello Ann', stock: { item: 'Ann', left: 7, for: 'desk' } });
  const unknown = await client.send('Ann', to('manager', { metadata: { tool: 'sing' } }));
  expect(unknown.status.state).toBe('failed');
  const sent = await client.send('slow', { ...to('manager', { metadata: { tool: 'stock' } }), blocking: false });
  await reached.promise;
  await client.messages.cancel({ messageId: sent.id });
  await until(() => reasons.includes('CANCELED'), { what: 'the end of the call' });
});
