import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { ResolveResponse } from '../../contracts/api/messages.js';
import { GetApprovalsResponse } from '../../contracts/api/policies/approvals.js';
import { BacktestResponse } from '../../contracts/api/policies/backtest.js';
import { ToolResult } from '../../contracts/api/tools.js';
import { dispatchIn, hostedAgent, message } from '../mesh/hosted/hosted-agent.js';
import { refusedWith } from '../mesh/tools/tool-fixture.js';
import { gate, until } from '../setup/until.js';
import { fleetOn, to } from './fixture.js';
import { buyer, teller, wantApproval } from './sdk-agents.js';

const { client, platform, dispatchStates } = await fleetOn();
await wantApproval(platform);

const resolve = (id: string, body: object) => client.ok(`/messages/${id}/resolve`, body, ResolveResponse);

test.each(['connected', 'hosted'] as const)(
  'a tool call of a %s agent waits for the human, and the agent goes on',
  async (mode) => {
    const { paid } = await teller(platform);
    const { agent, tasks } = buyer(platform, mode);
    await (mode === 'hosted' ? agent.serve() : agent.connect());
    const task = await client.send('buy', to(mode));
    expect(task.status.state).toBe('input-required');
    const { input_request } = await client.message(task.id);
    expect(input_request).toMatchObject({ source: 'policy', tool: 'pay', arguments: { amount: 5 } });
    expect(paid).toEqual([]);
    await resolve(task.id, { resolution: 'approved', request_id: input_request?.request_id });
    expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('5 paid');
    expect(paid).toEqual([5]);
    expect(tasks).toHaveLength(1);
    expect(await dispatchStates(task.id)).toEqual(['completed']);
  },
);

test('one over HTTP is told to ask again, and passes when a human has approved', async () => {
  const { paid } = await teller(platform);
  const working = gate();
  const server = await hostedAgent({
    'message/send': async (reply) => {
      await working.promise;
      reply.result(message('done'));
    },
  });
  const about = { instance_id: 'courier-1', agent_type: 'courier', public_url: server.url, agent_card: {} };
  await client.post('/agents/register', about);
  const sent = await client.send('go', { ...to('courier'), blocking: false });
  const { dispatch_id } = dispatchIn(await until(() => server.received[0]));
  const payload = { tool: 'pay', arguments: { amount: 7 }, dispatch_id, idempotency_key: randomUUID() };
  const call = async (deadline_ms: number) =>
    ToolResult.parse((await client.post('/tools/call', { ...payload, deadline_ms })).body);
  for (let asked = 0; asked < 2; asked += 1) expect(await call(200)).toEqual(refusedWith('APPROVAL_PENDING'));
  const waiting = call(30_000);
  await resolve(sent.id, { resolution: 'approved' });
  expect(await waiting).toEqual({ ok: true, result: '7 paid' });
  expect(paid).toEqual([7]);
  working.open();
  await client.untilState(sent.id, 'completed');
  const { approvals } = await client.ok('/messages/get_approvals', { message_id: sent.id }, GetApprovalsResponse);
  expect(approvals).toHaveLength(1);
});

test('a backtest counts the calls that people were asked about, with what they were about', async () => {
  await teller(platform);
  const { agent } = buyer(platform, 'backtested');
  await agent.connect();
  const { id } = await client.send('buy', to('backtested'));
  await resolve(id, { resolution: 'approved' });
  await client.untilState(id, 'completed');
  const match = { tools: ['pay'], agent_types: ['backtested'], arguments: [{ path: 'amount', op: 'gte', value: 5 }] };
  const policy = { scope: 'tool', decision: 'deny', match };
  const found = await client.ok('/policies/backtest', { policy }, BacktestResponse);
  expect(found).toMatchObject({ matched: 1, unknown: 0, by_decision: { deny: 1 }, sampled: false });
  expect(found.samples).toMatchObject([{ message_id: id, tool: 'pay', arguments: { amount: 5 } }]);
});
