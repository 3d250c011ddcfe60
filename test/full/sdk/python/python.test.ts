import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import { SILENT_LOG, textOf, z } from '../../../../sdk/index.js';
import { sdkOn } from '../../../sdk/platform/fixture.js';
import { credentialOf, outputOf, startProgram, startPythonAgent } from '../../../sdk/python/programs.js';
import { runScenario, SCENARIOS, type WireAgent } from '../../../sdk/wire/runner.js';
import { cleanUp } from '../../../setup/clean-up.js';
import { pythonWithPackage } from '../../../setup/python-package.js';
import { until } from '../../../setup/until.js';
import { piecesOf, platformBehindProxy, untilAtWork } from './behind-proxy.js';

const readme = readFileSync(join(import.meta.dirname, '..', '..', '..', '..', 'python', 'README.md'), 'utf8');
/** The programs of the gate's tests. */
const programs = join(import.meta.dirname, '..', '..', '..', 'sdk');
const [, storyteller = ''] = /```python\n([\s\S]*?)```/.exec(readme) ?? [];
const [python, { shared, proxy, client }] = await Promise.all([pythonWithPackage(), platformBehindProxy()]);

describe('the wire scenarios', () => {
  const child = spawn(python, ['-u', join(programs, 'wire', 'agent.py')], { stdio: ['pipe', 'pipe', 'inherit'] });
  let onEnded: (code: string | null) => void = () => undefined;
  createInterface({ input: child.stdout }).on('line', (line) => {
    onEnded((JSON.parse(line) as { ended: string | null }).ended);
  });
  cleanUp(async () => {
    const exited = once(child, 'exit');
    child.stdin.end();
    await exited;
  });

  /** One agent after the other in the Python process. */
  function inPython(): WireAgent {
    const over = new Promise<string | null>((resolve) => {
      onEnded = resolve;
    });
    const command = (value: object) => child.stdin.write(`${JSON.stringify(value)}\n`);
    return {
      start: (url, ca) => command({ start: { url, ca } }),
      close: (graceSeconds) => command({ close: graceSeconds }),
      ended: () => over,
    };
  }

  test.each(SCENARIOS)('the Python SDK: $name', async (scenario) => {
    await runScenario(scenario, inPython());
  });
});

describe('on a platform', () => {
  const toAgent = (skillId?: string) => ({ agentType: 'python', ...(skillId !== undefined && { skillId }) });
  const run = (args: string[], role: 'agent' | 'caller') => startProgram(python, args, credentialOf(shared, role));
  const startAgent = (args = [join(programs, 'python', 'fleet_agent.py')], type = 'python') =>
    startPythonAgent(run(args, 'agent'), type, client);

  test('by default it says on standard error that it has joined, is connected again, and drains', async () => {
    const agent = await startAgent(['-c', storyteller], 'storyteller');
    proxy.cut();
    await until(() => agent.output.includes('connected again'), { what: 'the new connection' });
    agent.child.kill('SIGTERM');
    await agent.ended;
    const { base_url } = shared.platform.devJson();
    const where = `\\(instance_id=\\S+, url=${base_url}`;
    const lines = [
      `joined the platform ${where}\\)`,
      'connection lost, trying again: .*\\(code=CONNECTION_LOST\\)',
      `connected again ${where}, resumed=True\\)`,
      'draining: takes no new work and finishes what runs \\(grace_seconds=30\\)',
    ];
    expect(agent.output).toMatch(new RegExp(`^${lines.map((line) => `agent storyteller: ${line}\n`).join('')}$`));
  });

  test('answers, streams, calls a tool of an agent on the other SDK, and answers its calls', async () => {
    await startAgent();
    expect(textOf(await client.send('hello', toAgent()))).toBe('You said: hello');
    expect(await piecesOf(client, '3', toAgent('count'))).toEqual(['1 ', '2 ', '3 ']);
    const other = sdkOn(() => shared.platform.devJson()).agentOf('clerk', { log: SILENT_LOG });
    other.tool('total', z.object({ numbers: z.array(z.int()) }), ({ numbers }) =>
      numbers.reduce((sum, n) => sum + n, 0),
    );
    other.onMessage(async (task) => String(await task.callTool('longest', { words: task.text.split(' ') })));
    await other.connect();
    expect(textOf(await client.send('1 2 3', toAgent('sum')))).toBe('6');
    expect(textOf(await client.send('a fleet of agents', { agentType: 'clerk' }))).toBe('agents');
  });

  test('a question outlives the process that asked it', async () => {
    const first = await startAgent();
    const waiting = await client.send('tea', toAgent('order'));
    expect(waiting.status.state).toBe('input-required');
    first.child.kill('SIGKILL');
    await first.ended;
    await until(
      async () => (await client.post('/agents/get', { agent_type: 'python', status: 'available' })).count === 0,
    );
    await startAgent();
    await client.messages.resolve(waiting.id, { resolution: 'confirmed' });
    const second = await client.messages.waitFor(waiting.id);
    expect(second.inputRequest?.title).toBe('Wrap?');
    await client.messages.resolve(waiting.id, { resolution: 'declined' });
    expect((await client.messages.waitFor(waiting.id)).assistantOutput).toBe('Ordered tea, not wrapped.');
  });

  test('work that the grace of a drain cuts off fails, and the log counts it', async () => {
    const program = `
import asyncio
from agent_fleet import Agent
agent = Agent("sleeper", drain_grace_seconds=1)
@agent.on_message
async def sleep(task):
    await asyncio.sleep(600)
agent.run()
`;
    const agent = await startAgent(['-c', program], 'sleeper');
    const tasks = await Promise.all(
      ['1', '2'].map((text) => client.send(text, { agentType: 'sleeper', blocking: false })),
    );
    for (const task of tasks) await untilAtWork(client, task);
    agent.child.kill('SIGTERM');
    expect(await agent.ended).toEqual([null, 'SIGTERM']);
    expect(agent.output).toContain('what was running is given up (dispatches=2)\n');
    for (const { id } of tasks) expect((await client.messages.waitFor(id)).error?.code).toBe('AGENT_DISCONNECTED');
  });

  test('a canceled message cancels its handler', async () => {
    const agent = await startAgent();
    const task = await client.send('1000', { ...toAgent('count'), blocking: false });
    await untilAtWork(client, task);
    await client.messages.cancel({ messageId: task.id });
    await until(() => agent.output.includes('canceled'), { what: 'the line of the handler' });
    expect((await client.messages.getById({ messageId: task.id })).message.state).toBe('canceled');
  });

  test('the client sends, follows, reads, decides and reports errors', async () => {
    await startAgent();
    expect(await outputOf(run([join(programs, 'python', 'caller.py')], 'caller'))).toBe('all is well\n');
  });
});
