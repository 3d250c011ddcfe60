import { expect, test } from 'vitest';
import { ModelHandler } from '../../examples/concierge/model-handler.js';
import { createServiceTools } from '../../examples/concierge/service-tools.js';
import { calculate } from '../../examples/concierge/simple-tools.js';
import { httpServer } from '../runtime/loopback-server.js';
import { task } from './task.js';

type Round = { text?: string; call?: { name: string; args: object }; status?: number };

/** An OpenAI-compatible endpoint that plays `rounds`, streaming text and arguments in small pieces. */
async function model(rounds: Round[]) {
  const requests: { messages: { role: string; content: string | null }[]; tools: unknown[] }[] = [];
  const { url } = await httpServer((request, response) => {
    const read = async () => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      requests.push(JSON.parse(body));
      const { text = '', call, status = 200 } = rounds.shift() ?? { status: 500 };
      if (status !== 200) return void response.writeHead(status).end('overloaded');
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const send = (data: object) => response.write(`data: ${JSON.stringify(data)}\n\n`);
      for (const piece of text.match(/.{1,5}/gs) ?? []) send({ choices: [{ delta: { content: piece } }] });
      if (call) {
        send({
          choices: [{ delta: { tool_calls: [{ index: 0, id: 'c1', function: { name: call.name, arguments: '' } }] } }],
        });
        for (const piece of JSON.stringify(call.args).match(/.{1,7}/gs) ?? []) {
          send({ choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: piece } }] } }] });
        }
      }
      send({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 4 } });
      response.end('data: [DONE]\n\n');
    };
    void read();
  });
  return {
    handler: new ModelHandler({ url: `${url}/v1`, model: 'm', apiKey: 'k' }, [calculate, ...createServiceTools()]),
    requests,
  };
}

test('streams the text, makes the calls, and reports usage', async () => {
  const { handler, requests } = await model([
    { call: { name: 'calculate', args: { expression: '6*7' } } },
    { text: 'It is 42.' },
  ]);
  const { task: given, streamed } = task('six times seven?');
  expect(await handler.handle(given)).toEqual({
    state: 'completed',
    usage: { inputTokens: 20, outputTokens: 8, model: 'm' },
  });
  expect(streamed.join('')).toBe('It is 42.');
  expect(requests[1]?.messages.at(-1)).toMatchObject({ role: 'tool', tool_call_id: 'c1', content: '6*7 = 42' });
});

test('remembers what was said in the session', async () => {
  const { handler, requests } = await model([{ text: 'Hello Ann.' }, { text: 'Ann.' }]);
  await handler.handle(task('I am Ann').task);
  await handler.handle(task('Who am I?').task);
  expect(requests[1]?.messages.map((message) => message.content).slice(1)).toEqual([
    'I am Ann',
    'Hello Ann.',
    'Who am I?',
  ]);
});

test('a tool that needs a human asks, and goes on with the answer', async () => {
  const call = { name: 'operate_service', args: { action: 'restart', service: 'billing' } };
  const { handler, requests } = await model([{ call }, { text: 'Restarted.' }]);
  expect(await handler.handle(task('restart it').task)).toMatchObject({
    state: 'input-required',
    question: { kind: 'confirmation', arguments: { service: 'billing' } },
    usage: { inputTokens: 10 },
  });
  const again = task('restart it', { requestId: 'r', resolution: 'confirmed', accepted: true });
  expect(await handler.handle(again.task)).toMatchObject({ state: 'completed', usage: { inputTokens: 10 } });
  expect(requests[1]?.messages.at(-1)?.content).toContain('billing was restarted');
});

test('tells the model that the human refused', async () => {
  const call = { name: 'operate_service', args: { action: 'delete', service: 'billing' } };
  const { handler, requests } = await model([{ call }, { text: 'Fine.' }]);
  await handler.handle(task('delete it').task);
  await handler.handle(task('delete it', { requestId: 'r', resolution: 'declined', accepted: false }).task);
  expect(requests[1]?.messages.at(-1)?.content).toContain('The human refused');
});

test('a model that fails is a clear error', async () => {
  const { handler } = await model([{ status: 503 }]);
  await expect(handler.handle(task('hi').task)).rejects.toThrow('the model m answered 503: overloaded');
});
