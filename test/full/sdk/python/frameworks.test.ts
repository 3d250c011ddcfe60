import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { textOf } from '../../../../sdk/index.js';
import { OpenAiServer } from '../../../sdk/python/openai-server.js';
import { credentialOf, startProgram, startPythonAgent } from '../../../sdk/python/programs.js';
import { fleetClient } from '../../../setup/fleet-client.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { pythonWithPackage } from '../../../setup/python-package.js';
import { until } from '../../../setup/until.js';

/** The examples of the Python package, on its wheel with the extras and on a platform. */
const examples = join(import.meta.dirname, '..', '..', '..', '..', 'python', 'examples');
const [python, shared] = await Promise.all([pythonWithPackage(['langgraph', 'openai-agents']), startPlatform()]);
const client = fleetClient(shared.platform);

/** An example in a folder of its own. */
function exampleIn(cwd: string, name: string, env: Record<string, string> = {}) {
  return startProgram(python, [join(examples, name)], { ...credentialOf(shared, 'agent'), ...env }, { cwd });
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'python-example-'));
  onTestFinished(() => rmSync(made, { recursive: true }));
  return made;
}

test('the example on LangGraph asks before it pays back', async () => {
  await startPythonAgent(exampleIn(folder(), 'langgraph_agent.py'), 'refunder', client);
  for (const [resolution, answer] of [
    ['confirmed', 'Order A-17 is refunded.'],
    ['declined', 'Nothing was refunded.'],
  ] as const) {
    const task = await client.send('A-17', { agentType: 'refunder' });
    expect(task.status.state).toBe('input-required');
    expect(textOf(task.status.message ?? [])).toBe('Refund order A-17?');
    await client.messages.resolve(task.id, { resolution });
    expect((await client.messages.waitFor(task.id)).assistantOutput).toBe(answer);
  }
});

test('the example on the OpenAI Agents SDK answers, and asks before it pays back, also after a restart', async () => {
  const model = await OpenAiServer.start([
    { call: 'price', args: { item: 'tea' } },
    'Tea is 2.50.',
    { call: 'refund', args: { order: 'A-17' } },
    'It is done.',
  ]);
  const env = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'none', OPENAI_AGENTS_DISABLE_TRACING: 'true' };
  const cwd = folder();
  const first = await startPythonAgent(exampleIn(cwd, 'openai_agent.py', env), 'assistant', client);
  const { session_id } = await client.post('/sessions/init', { agent_type: 'assistant' });
  const contextId = String(session_id);
  expect(textOf(await client.send('How much is tea?', { contextId }))).toBe('Tea is 2.50.');

  const task = await client.send('Refund order A-17', { contextId });
  expect(task.status.state).toBe('input-required');
  const { message } = await client.messages.getById({ messageId: task.id });
  expect(message.inputRequest).toMatchObject({ kind: 'approval', tool: 'refund', arguments: { order: 'A-17' } });
  first.child.kill('SIGKILL');
  await first.ended;
  await until(
    async () => (await client.post('/agents/get', { agent_type: 'assistant', status: 'available' })).count === 0,
    { what: 'the loss of the first process' },
  );
  await startPythonAgent(exampleIn(cwd, 'openai_agent.py', env), 'assistant', client);
  await client.messages.resolve(task.id, { resolution: 'approved' });
  expect((await client.messages.waitFor(task.id)).assistantOutput).toBe('It is done.');
  const last = JSON.stringify(model.requests.at(-1)?.input);
  expect(last).toContain('Order A-17 is refunded.');
  expect(last).toContain('How much is tea?'); // the conversation of the session
});
