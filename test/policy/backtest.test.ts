import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { z } from 'zod';
import { createBacktests } from '../../backtest/backtest.js';
import { BACKTEST_OPERATIONS, BacktestResponse } from '../../contracts/api/policies/backtest.js';
import { createOutbound } from '../../http/outbound.js';
import { compilePolicy } from '../../policy/compiled-policy.js';
import { WebhookEvaluators } from '../../policy/evaluators/webhook.js';
import { serveApi } from '../api/served-api.js';
import { approvalsFixture } from '../messages/approvals/approvals-fixture.js';
import { gate } from '../setup/until.js';

const { request: BacktestRequest } = BACKTEST_OPERATIONS.backtestPolicy;
type Asked = z.input<typeof BacktestRequest>;

const api = await serveApi();
const { sent, calling, step } = await approvalsFixture(api);

const backtest = (policy: Asked['policy'], rest: Omit<Asked, 'policy'> = {}) =>
  api.client.ok('/policies/backtest', { policy, ...rest }, BacktestResponse);
/** A text that only one test sends. */
const word = () => `w${randomUUID().slice(0, 8)}`;
const saying = (text: string) => ({
  arguments: [{ path: 'parts.*.text', op: 'contains' as const, value: text }],
});

test('messages are matched as they were sent, by conditions and by an expression, and nothing follows', async () => {
  const text = word();
  const id = await sent(text);
  await sent('something else');
  const before = await api.database.query('SELECT count(*) FROM events');
  const found = await backtest({ scope: 'admission', decision: 'deny', match: saying(text) });
  expect(found).toMatchObject({ ok: true, matched: 1, unknown: 0, by_decision: { deny: 1, allow: 0 }, sampled: false });
  expect(found.examined).toBeGreaterThan(1);
  expect(found.samples).toMatchObject([
    { message_id: id, action: 'send', decision: 'deny', agent_type: 'worker', arguments: { parts: [{ text }] } },
  ]);
  const expression = `request.arguments.parts[0].text == "${text}" && request.token.scopes.size() > 0`;
  const evaluator = { type: 'cel' as const, expression };
  expect((await backtest({ scope: 'admission', decision: 'audit', evaluator })).by_decision).toMatchObject({
    audit: 1,
  });
  expect(await api.database.query('SELECT count(*) FROM events')).toEqual(before);
  expect(await api.database.query("SELECT 1 FROM policies WHERE name = 'backtest'")).toEqual([]);
});

test.each(['instance_id', 'instanceId', 'target_agent', 'targetAgent'])(
  'messages are matched by the instance that %s names',
  async (member) => {
    const text = word();
    const { id } = await api.client.send(text, { blocking: false, metadata: { [member]: 'worker-1' } });
    const match = { ...saying(text), instance_ids: ['worker-1'] };
    const found = await backtest({ scope: 'admission', decision: 'deny', match });
    expect(found).toMatchObject({ matched: 1, samples: [{ message_id: id, instance_id: 'worker-1' }] });
  },
);

test('an expression that fails decides as its policy says', async () => {
  const text = word();
  await sent(text);
  const expression = 'request.arguments.nothing == 1';
  const evaluator = { type: 'cel' as const, expression, on_error: 'require_approval' as const };
  const found = await backtest({ scope: 'admission', decision: 'deny', match: saying(text), evaluator });
  expect(found.by_decision).toEqual({ allow: 0, deny: 0, require_approval: 1, audit: 0 });
});

test('dispatches are matched by the agent that got them', async () => {
  const text = word();
  const id = await sent(text);
  expect((await step(id))?.dispatch_id).toBeDefined();
  const to = (instance: string) => ({ ...saying(text), instance_ids: [instance] });
  const found = await backtest({ scope: 'dispatch', decision: 'deny', match: to('worker-1') });
  expect(found).toMatchObject({ matched: 1, samples: [{ message_id: id, instance_id: 'worker-1' }] });
  expect((await backtest({ scope: 'dispatch', decision: 'deny', match: to('worker-2') })).matched).toBe(0);
});

test('calls that a person was asked about are matched, others that may match are unknown', async () => {
  const tool = word();
  const { id, request } = await calling({ amount: 7 }, {}, tool);
  const span = async (called: string) => {
    const attributes = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': called,
      'gen_ai.agent.name': 'worker',
    };
    await api.database.query(
      `INSERT INTO trace_spans (tenant_id, message_id, span_id, parent_span_id, name, kind, started_at, ended_at, attributes)
         VALUES ($1, $2, $3, '', $4, 'internal', now(), now(), $5)`,
      [api.tenantId, id, randomUUID().slice(0, 16), `execute_tool ${called}`, attributes],
    );
  };
  await span(tool);
  await span(word());
  const match = { tools: [tool], arguments: [{ path: 'amount', op: 'gt' as const, value: 5 }] };
  const policy = { scope: 'tool' as const, decision: 'require_approval' as const, match };
  const found = await backtest(policy);
  expect(found).toMatchObject({ matched: 1, unknown: 1, by_decision: { require_approval: 1 } });
  expect(found.samples).toMatchObject([
    { request_id: request.request_id, message_id: id, tool, arguments: { amount: 7 } },
  ]);
  const dearer = { ...match, arguments: [{ path: 'amount', op: 'gt' as const, value: 10 }] };
  expect(await backtest({ ...policy, match: dearer })).toMatchObject({ matched: 0, unknown: 1, samples: [] });
  // The span of a call that waited for a person is that call.
  await api.database.query(
    "UPDATE trace_spans SET started_at = now() - interval '1 hour' WHERE attributes ->> 'gen_ai.tool.name' = $1",
    [tool],
  );
  expect(await backtest(policy)).toMatchObject({ matched: 1, unknown: 0 });
});

test('of a policy with a bound, calls after so many are those of the next policy', async () => {
  const tool = word();
  for (const amount of [1, 2, 3]) await calling({ amount }, {}, tool);
  const policy = { scope: 'tool' as const, decision: 'allow' as const, match: { tools: [tool] } };
  const found = await backtest({ ...policy, max_calls: 2 });
  expect(found).toMatchObject({ matched: 3, by_decision: { allow: 2 }, over_max_calls: 1 });
  const over = found.samples.map(({ arguments: given, over_max_calls }) => [given?.amount, over_max_calls]);
  expect(over).toEqual([
    [3, true],
    [2, undefined],
    [1, undefined],
  ]);
  for (const max_calls of [null, 3])
    expect(await backtest({ ...policy, max_calls })).toMatchObject({ by_decision: { allow: 3 }, over_max_calls: 0 });
});

test('sessions and plans are matched; who opened a session is unknown to an expression', async () => {
  const user_id = word();
  const init = await api.client.post('/sessions/init', { agent_type: 'worker', user_id });
  const { session_id } = init.body as { session_id: string };
  const ofUser = `request.session.user_id == "${user_id}"`;
  const opened = { scope: 'session' as const, decision: 'deny' as const, match: { agent_types: ['worker'] } };
  const found = await backtest(opened, { limit: 1 });
  expect(found).toMatchObject({ examined: 1, matched: 1, samples: [{ session_id, action: 'init' }] });
  const byExpression = { ...opened, evaluator: { type: 'cel' as const, expression: ofUser } };
  expect(await backtest(byExpression, { limit: 1 })).toMatchObject({ matched: 0, unknown: 1 });
  const description = word();
  const steps = [{ description: 'first', agent_type: 'worker', message: 'go' }];
  expect((await api.client.post('/plans/create', { session_id, description, steps })).status).toBe(200);
  const stepped = [{ path: 'steps.*.agent_type', op: 'eq' as const, value: 'worker' }];
  const planned = await backtest({ scope: 'plan', decision: 'deny', match: { arguments: stepped } });
  expect(planned).toMatchObject({ matched: 1, samples: [{ action: 'create', arguments: { description } }] });
});

test('the newest are examined, up to the limit, in the period', async () => {
  const text = word();
  for (let n = 0; n < 60; n += 1) await sent(`${text} ${n}`);
  const policy = { scope: 'admission' as const, decision: 'allow' as const, match: saying(text) };
  const some = await backtest(policy, { limit: 3 });
  expect(some).toMatchObject({ examined: 3, matched: 3, sampled: true, by_decision: { allow: 3 } });
  expect(some.samples[0]).toMatchObject({ arguments: { parts: [{ text: `${text} 59` }] } });
  const all = await backtest(policy);
  expect(all).toMatchObject({ matched: 60, sampled: false });
  expect(all.samples).toHaveLength(20);
  const earlier = { from: '2020-01-01T00:00:00Z', to: '2020-01-02T00:00:00Z' };
  expect(await backtest(policy, earlier)).toMatchObject({ examined: 0, sampled: false });
});

test.each<[string, policy: object, rest?: object]>([
  ['a webhook', { evaluator: { type: 'webhook', url: 'https://a.example' } }],
  ['a bad expression', { evaluator: { type: 'cel', expression: 'x(' } }],
  ['an unknown member of the policy', { scopes: [] }],
  ['more than 30 days', {}, { from: '2020-01-01T00:00:00Z' }],
  ['a period that ends before it begins', {}, { from: '2999-01-01T00:00:00Z' }],
])('%s is 400', async (_what, more, rest = {}) => {
  const policy = { scope: 'tool', decision: 'deny', ...more };
  expect(await api.client.failure('/policies/backtest', { policy, ...rest })).toBe('400 BAD_REQUEST');
});

test('the scope read is not enough, and another tenant has nothing to match', async () => {
  const policy = { scope: 'admission', decision: 'deny' };
  const reader = await api.clientOf(api.tenantId, ['read']);
  expect(await reader.failure('/policies/backtest', { policy })).toBe('403 forbidden');
  const stranger = await api.clientOf(await api.otherTenant(), ['admin']);
  expect(await stranger.ok('/policies/backtest', { policy }, BacktestResponse)).toMatchObject({ examined: 0 });
});

const compile = {
  compile: (row: Parameters<typeof compilePolicy>[0]) =>
    compilePolicy(row, {
      secrets: { decrypt: (sealed: Buffer) => sealed },
      webhooks: new WebhookEvaluators(createOutbound({ allowCidrs: [] })),
    }),
};
const ofMessages = BacktestRequest.parse({ policy: { scope: 'admission', decision: 'deny' } });

test('when the time is used up, the answer says what was examined until then', async () => {
  await sent();
  const inNoTime = createBacktests({ db: api.db, policies: compile }, 0);
  expect(await inNoTime(api.tenantId, ofMessages)).toMatchObject({ examined: 0, sampled: true });
});

test('a tenant runs one at a time, and another one meanwhile', async () => {
  const reading = gate();
  const db = { ...api.db, tenant: async <T>() => [await reading.promise].slice(1) as T };
  const run = createBacktests({ db, policies: compile });
  const [first, second] = [run('ten_1', ofMessages), run('ten_1', ofMessages)];
  await expect(run('ten_1', ofMessages)).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  const other = run('ten_2', ofMessages);
  reading.open();
  for (const each of [first, second, other]) expect(await each).toMatchObject({ ok: true, examined: 0 });
});
