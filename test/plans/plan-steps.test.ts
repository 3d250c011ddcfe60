import { expect, test } from 'vitest';
import { ResolveResponse } from '../../contracts/api/messages.js';
import { PlanResponse } from '../../contracts/api/plans.js';
import { sessionDeps } from '../../messages/cancel.js';
import { expireIfIdle } from '../../sessions/session-end.js';
import { serveApi } from '../api/served-api.js';
import { createPlan, newSession, readPlan, step, stepStates } from './plan-fixture.js';
import { done, failed, PlanRecord } from './plan-record.js';

const api = await serveApi();
const { client, tenantId: tenant_id } = api;
const record = new PlanRecord(api);
await record.agent('echo');
await record.agent('silent', () => null);

test('a plan whose second step uses the output of the first is carried out and completed, and its events say so', async () => {
  const plan = await createPlan(client, [
    step('first', 'echo', 'one'),
    step('second', 'echo', [{ kind: 'text', text: 'after {{steps.first.output}}' }], { depends_on: ['first'] }),
  ]);
  expect(plan).toMatchObject({ state: 'running', auto_approve: true, progress: { total: 2 } });
  const ended = await record.move(plan.plan_id);
  expect(stepStates(ended)).toEqual({ first: 'completed', second: 'completed' });
  const [first, second] = ended.steps;
  expect(first?.attempts).toBe(1);
  expect(second?.worker).toMatchObject({ agent_type: 'echo', instance_id: 'echo-1' });
  expect(await client.message(second?.message_id ?? '')).toMatchObject({
    ...{ session_id: plan.session_id, user_input: 'after echo: one', role: 'user' },
    assistant_output: 'echo: after echo: one',
  });
  const { plan_id, session_id, created_by: approved_by } = plan;
  expect(await record.events(session_id)).toEqual([
    { event_type: 'plan.created', plan_id, session_id, step_count: 2, description: 'a plan' },
    { event_type: 'plan.approved', plan_id, approved_by },
    { event_type: 'plan.completed', plan_id, session_id, steps_completed: 2, duration_ms: expect.any(Number) },
  ]);
});

test('no more steps are under way at once than it allows, and those that may go at once do', async () => {
  const held: string[] = [];
  let answers = 0;
  await record.agent('holding', (_text, id) => {
    if (!held.includes(id)) held.push(id);
    return held.indexOf(id) < answers ? done('done') : null;
  });
  const steps = ['a', 'b', 'c', 'd', 'e'].map((id) => step(id, 'holding', id));
  let plan = await record.run(steps, { max_parallel: 2 });
  const counts = [];
  for (; plan.state === 'running'; plan = await record.move(plan.plan_id)) {
    counts.push(plan.progress.running);
    answers += 1;
  }
  expect(counts).toEqual([2, 2, 2, 2, 1]);
  expect(plan.progress).toMatchObject({ total: 5, completed: 5 });
});

test('what depends on a failed step is skipped, the rest goes on, and the plan fails with the first failure', async () => {
  await record.agent('failing', () => failed('HANDLER_ERROR'));
  const plan = await record.run([
    step('fine', 'echo', 'one'),
    step('broken', 'failing', 'two'),
    step('after', 'echo', 'three', { depends_on: ['broken'] }),
    step('after_that', 'echo', '{{steps.after.output}}'),
    step('beside', 'echo', 'four', { depends_on: ['fine'] }),
  ]);
  expect(stepStates(plan)).toEqual({
    ...{ fine: 'completed', broken: 'failed', after: 'skipped', after_that: 'skipped', beside: 'completed' },
  });
  const { plan_id, session_id } = plan;
  const error = { code: 'HANDLER_ERROR', message: 'it broke' };
  expect(plan).toMatchObject({ state: 'failed', failed_step: 1, error });
  const failure = { event_type: 'plan.failed', plan_id, session_id, failed_step: 1, error: 'HANDLER_ERROR' };
  expect((await record.events(session_id)).at(-1)).toEqual(failure);
});

test('a step is tried again as often as it may be, each time as a message of its own', async () => {
  const seen: string[] = [];
  await record.agent('unsteady', (_text, id) => {
    seen.push(id);
    return seen.length < 3 ? failed('HANDLER_ERROR', 'not yet') : done('at last');
  });
  const { plan_id } = await record.run([step('a', 'unsteady', 'try', { max_attempts: 3 })]);
  await record.move(plan_id, 1_500);
  const ended = await record.move(plan_id, 5_000);
  expect(ended.steps[0]).toMatchObject({ state: 'completed', attempts: 3, message_id: seen[2] });
  expect(ended.steps[0]).not.toHaveProperty('error');
  const sent = await api.database.query(
    "SELECT message_id, metadata -> 'plan' AS plan FROM messages WHERE message_id = ANY ($1) ORDER BY message_id",
    [seen],
  );
  const plans = [1, 2, 3].map((attempt) => ({ plan_id, step_id: 'a', attempt }));
  expect(sent).toEqual(plans.map((plan, place) => ({ message_id: seen[place], plan })));
});

test('a step that is out of time fails, its message is canceled, and it is not tried again', async () => {
  const more = { timeout_seconds: 1, max_attempts: 3 };
  const { plan_id } = await record.run([step('a', 'silent', 'wait', more)]);
  const [ended] = (await record.move(plan_id, 1_001)).steps;
  expect(ended).toMatchObject({ state: 'failed', attempts: 1, error: { code: 'DEADLINE_EXCEEDED' } });
  expect((await client.message(ended?.message_id ?? '')).state).toBe('canceled');
});

test('the time for which a step waits for a human does not count', async () => {
  let isAnswered = false;
  const question = { kind: 'confirmation' as const, title: 'Go on?' };
  await record.agent('asking', () =>
    isAnswered ? done('thanks') : { state: 'input-required', artifacts: [], input_request: question },
  );
  const { plan_id } = await record.run([
    step('a', 'asking', 'ask', { timeout_seconds: 5 }),
    step('b', 'silent', 'wait', { timeout_seconds: 6 }),
  ]);
  const waiting = await record.move(plan_id, 7_000);
  expect(waiting).toMatchObject({ state: 'running', progress: { 'input-required': 1, failed: 1 } });
  isAnswered = true;
  const path = `/messages/${waiting.steps[0]?.message_id}/resolve`;
  await client.ok(path, { resolution: 'confirmed' }, ResolveResponse);
  const ended = await record.move(plan_id);
  expect([ended.state, stepStates(ended)]).toEqual(['failed', { a: 'completed', b: 'failed' }]);
});

const LONG = '{{steps.long.output}}';
test.each([
  ['that nobody can do', 'unknown-type', 'do', 'TARGET_UNAVAILABLE', 1],
  ['whose message outputs make too large', 'echo', LONG.repeat(2), 'PAYLOAD_TOO_LARGE', 0],
  ['that uses an output ten thousand times', 'echo', LONG.repeat(10_000), 'PAYLOAD_TOO_LARGE', 0],
])('a step %s fails with the reason, and others go on', async (_what, type, text, code, attempts) => {
  await record.agent('verbose', () => done('x'.repeat(200_000)));
  const steps = [step('long', 'verbose', 'talk'), step('b', type, text, { max_attempts: attempts + 1 })];
  const { plan_id } = await record.run([...steps, step('c', 'echo', 'beside it')]);
  const plan = await record.move(plan_id, 60_000);
  expect(stepStates(plan)).toEqual({ long: 'completed', b: 'failed', c: 'completed' });
  expect(plan.steps[1]).toMatchObject({ error: { code } });
  if (attempts === 0) expect(plan.steps[1]).toMatchObject({ attempts: 0, message_id: null });
});

const propose = (more: object = {}) => createPlan(client, [step('a', 'echo', 'one')], { auto_approve: false, ...more });

test('a proposed plan sends nothing until it is approved, once', async () => {
  const { plan_id, session_id, approval_expires_at } = await propose();
  expect(approval_expires_at).toEqual(expect.any(String));
  expect(await record.move(plan_id)).toMatchObject({ state: 'proposed', steps: [{ message_id: null }] });
  const body = { plan_id, comment: 'go' };
  const answers = await Promise.all(Array.from({ length: 20 }, () => client.failure('/plans/approve', body)));
  expect(answers.filter((answer) => answer === '200')).toHaveLength(1);
  expect(answers.filter((answer) => answer === '409 ALREADY_RESOLVED')).toHaveLength(19);
  const ended = await record.move(plan_id);
  expect(ended).toMatchObject({ state: 'completed', decisions: [{ resolution: 'approved', comment: 'go' }] });
  const events = (await record.events(session_id)).map(({ event_type }) => event_type);
  expect(events).toEqual(['plan.created', 'plan.approval_required', 'plan.approved', 'plan.completed']);
  for (const path of ['/plans/approve', '/plans/cancel'])
    expect(await client.failure(path, { plan_id })).toBe('409 ALREADY_TERMINAL');
});

test('a plan that is rejected runs nothing', async () => {
  const { plan_id, session_id } = await propose();
  const { plan } = await client.ok('/plans/reject', { plan_id, comment: 'no' }, PlanResponse);
  expect(plan).toMatchObject({
    ...{ state: 'rejected', error: { code: 'APPROVAL_REJECTED' } },
    ...{ decisions: [{ resolution: 'rejected', comment: 'no' }], steps: [{ state: 'skipped', message_id: null }] },
  });
  expect(await client.failure('/plans/approve', { plan_id })).toBe('409 ALREADY_TERMINAL');
  const rejected_by = plan.decisions[0]?.principal.id;
  const rejected = { event_type: 'plan.rejected', plan_id, session_id, rejected_by };
  expect((await record.events(session_id)).at(-1)).toEqual(rejected);
});

test('a proposed plan keeps its session from idling out', async () => {
  const [session_id, other] = [await newSession(client), await newSession(client)];
  const { plan_id } = await propose({ session_id });
  await api.database.query("UPDATE sessions SET created_at = now() - interval '1 day'");
  const ended = [];
  for (const id of [session_id, other])
    ended.push((await expireIfIdle(sessionDeps(api.core), { tenant_id, session_id: id })).ended);
  expect(ended).toEqual([false, true]);
  await client.ok('/plans/approve', { plan_id }, PlanResponse);
  expect((await record.move(plan_id)).state).toBe('completed');
});

type End = (plan_id: string, session_id: string) => Promise<unknown>;
test.each<[string, string | RegExp, End]>([
  ['by a call', 'enough', (plan_id) => client.ok('/plans/cancel', { plan_id, reason: 'enough' }, PlanResponse)],
  ['with its session', /session has ended/, (_plan, session_id) => client.failure('/sessions/close', { session_id })],
  ['by an operator', /operator/, (plan_id) => record.activities.cancelPlanByOperator(record.inputOf(plan_id))],
])('a plan that is canceled %s cancels what is under way, and starts no further step', async (_how, text, end) => {
  const reason = typeof text === 'string' ? text : expect.stringMatching(text);
  const steps = [step('a', 'silent', 'go'), step('b', 'echo', 'then', { depends_on: ['a'] })];
  const { plan_id, session_id } = await record.run(steps);
  await end(plan_id, session_id);
  const canceled = await record.move(plan_id);
  expect(canceled).toMatchObject({ state: 'canceled', error: { code: 'CANCELED', message: reason } });
  expect(stepStates(canceled)).toEqual({ a: 'failed', b: 'skipped' });
  expect((await client.message(canceled.steps[0]?.message_id ?? '')).state).toBe('canceled');
  const [event] = await record.events(session_id, 'plan.canceled');
  expect(event).toEqual({ event_type: 'plan.canceled', plan_id, session_id, reason });
});

const refusal = async (body: object) =>
  client.failure('/plans/create', {
    ...{ session_id: await newSession(client), description: 'x', steps: [step('a', 'echo', 'one')] },
    ...body,
  });

test.each([
  ['no steps', { steps: [] }],
  ['a cycle', { steps: [step('a', 'echo', '{{steps.b.output}}'), step('b', 'echo', 'x', { depends_on: ['a'] })] }],
  ['201 steps', { steps: Array.from({ length: 201 }, (_, index) => step(`s${index}`, 'echo', 'x')) }],
  ['an unknown field', { priority: 1 }],
  ['a step without a message', { steps: [{ description: 'x' }] }],
])('a plan with %s: 400', async (_what, body) => {
  expect(await refusal(body)).toBe('400 BAD_REQUEST');
});

test('a plan in a session that is not there, or has ended, is refused', async () => {
  expect(await refusal({ session_id: 'ses_none' })).toBe('404 NOT_FOUND');
  const session_id = await newSession(client);
  await client.post('/sessions/close', { session_id });
  expect(await refusal({ session_id })).toBe('409 SESSION_CLOSED');
});

test('plans are listed, newest first, by session and state', async () => {
  const { plan_id: older, session_id } = await propose();
  const { plan_id: newer } = await record.run([step('a', 'echo', 'x')], { session_id });
  const list = async (more: object) =>
    ((await client.post('/plans/get', { session_id, ...more })).body as { plans: { plan_id: string }[] }).plans;
  expect((await list({})).map(({ plan_id }) => plan_id)).toEqual([newer, older]);
  expect((await list({ state: 'proposed' })).map(({ plan_id }) => plan_id)).toEqual([older]);
  expect(await list({ state: 'completed' })).toMatchObject([{ progress: { total: 1, completed: 1 } }]);
  expect((await readPlan(client, newer)).session_id).toBe(session_id);
});
