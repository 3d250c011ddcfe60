import { Agent, type AgentTask, SILENT_LOG, ToolError, textOf, z } from '../../../sdk/index.js';

/** The agent of the wire scenarios on the TypeScript SDK: what agent.py is on the Python SDK. */
export function wireAgent(url: string, ca: string): Agent {
  const credential = { url, ca, clientId: 'cred_1', clientSecret: 'secret' };
  const agent = new Agent({
    ...credential,
    type: 'wire',
    instanceId: 'wire-1',
    maxConcurrentTasks: 4,
    drainOnSignals: false,
    retryPauseMs: 50,
    log: SILENT_LOG,
  });
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  agent.onMessage(async (task) => {
    switch (task.text.split(' ')[0]) {
      case 'words':
        return words();
      case 'hold':
        await task.stream('one ');
        await released;
        await task.stream('two');
        return;
      case 'release':
        release();
        return 'released';
      case 'replace':
        await task.stream('draft');
        return 'final';
      case 'status':
        await task.status('thinking');
        return 'done';
      case 'usage':
        return {
          state: 'completed',
          artifacts: [{ artifactId: 'a1', name: 'sum', parts: [{ kind: 'data', data: { sum: 3 } }] }],
          usage: { inputTokens: 1, outputTokens: 2, model: 'm' },
        };
      case 'bad-usage':
        return {
          state: 'completed',
          parts: [{ kind: 'text', text: 'done' }],
          usage: { inputTokens: -1, outputTokens: 2 },
        };
      case 'order':
        return order(task);
      case 'ask-and-return':
        return task.resolution?.resolution ?? task.ask({ kind: 'confirmation', title: 'Sure?', prompt: 'Really?' });
      case 'call':
        return JSON.stringify(await task.callTool('total', { x: 1 }, { target: { agentType: 'clerk' } }));
      case 'call-or-say':
        return task.callTool('total').then(
          () => 'it went through',
          (error: ToolError) => `${error.code} ${error.retryable}`.toLowerCase(),
        );
      case 'key':
        return task.idempotencyKey;
      case 'history': {
        const turns = await task.history({ limit: 2 });
        return turns.map(({ role, text }) => `${role}: ${text}`).join(', ');
      }
      case 'state':
        return (await task.stateOf('msg_0')) ?? 'none';
      case 'forward':
        return textOf(await task.client.send('on', { agentType: 'clerk', metadata: { own: 1 } }));
      case 'fail':
        throw new Error('no tea');
      case 'refuse':
        return { state: 'failed', code: 'NO_TEA', message: 'sold out', retryable: true };
      case 'nul':
        return 'a\0b';
      case 'nothing':
        return '';
      default:
        return `You said: ${task.text}`;
    }
  });
  agent.skill(
    { id: 'add', description: 'Adds two numbers', idempotent: true, input: z.object({ x: z.int(), y: z.int() }) },
    (_task, { x, y }) => String(x + y),
  );
  const numbers = z.object({ x: z.int(), y: z.int() }).describe('The sum of two numbers');
  agent.tool('sum', numbers, ({ x, y }) => ({ sum: x + y }));
  agent.tool('refuse', z.object({}), (_args, call) => {
    throw new ToolError(`not for ${call.caller.agentType}`, { code: 'NOT_NOW', retryable: true });
  });
  agent.tool('relay', z.object({}), (_args, call) => call.callTool('total', { x: 2 }));
  agent.tool('wait', z.object({}), () => new Promise(() => undefined));
  return agent;
}

async function* words() {
  yield* ['one ', 'two ', '', 'three'];
}

async function order(task: AgentTask) {
  const schema = { type: 'object', properties: { tea: { type: 'string' } } };
  const form = await task.ask({ kind: 'form', title: 'Order', prompt: 'Which tea?', schema });
  if (!form.accepted) return 'Nothing was ordered.';
  const sure = await task.ask({ kind: 'confirmation', title: 'Sure?', prompt: `Order ${form.data?.tea}?` });
  return sure.accepted ? `Ordered ${form.data?.tea}.` : 'Nothing was ordered.';
}
