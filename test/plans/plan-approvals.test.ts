import { expect, test } from 'vitest';
import type { Task } from '../../contracts/a2a/a2a.js';
import { PlanResponse, PlansGetResponse } from '../../contracts/api/plans.js';
import { TenantLimitsResponse } from '../../contracts/api/tenants/tenants.js';
import { serveApi } from '../api/served-api.js';
import { decisions } from '../messages/approvals/approvals-fixture.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { until } from '../setup/until.js';
import { createPlan, newSession, readPlan, step, stepStates, withPolicy } from './plan-fixture.js';
import { PlanRecord } from './plan-record.js';

const api = await serveApi();
const { client } = api;
const { approvalsOf, caller, outcome, person } = decisions(api);
const record = new PlanRecord(api);
await record.agent('echo');
const HOUR_MS = 3_600_000;

const approve = async (plan_id: string, by: ApiClient = client) =>
  (await by.ok('/plans/approve', { plan_id }, PlanResponse)).plan.state;
const resolve = (messageId: string | null | undefined, resolution = 'approved', by = client) =>
  outcome(by, messageId ?? '', { resolution });
const one = [step('a', 'echo', 'one')];

/** A plan with a step that requires approval, once somebody is asked. */
async function asking() {
  const plan = await record.run([
    step('draft', 'echo', 'hello'),
    step('publish', 'echo', 'publish {{steps.draft.output}}', { requires_approval: true, max_attempts: 2 }),
    step('after', 'echo', '{{steps.publish.output}}'),
  ]);
  expect(stepStates(plan)).toEqual({ draft: 'completed', publish: 'input-required', after: 'pending' });
  const { plan_id, session_id, steps } = plan;
  return { plan_id, session_id, message_id: steps[1]?.message_id ?? '' };
}

test('a step that requires approval asks a human, shows what would be sent, and goes on when it is approved', async () => {
  const { plan_id, session_id, message_id } = await asking();
  expect(await client.message(message_id)).toMatchObject({
    ...{ state: 'input-required', user_input: 'publish echo: hello' },
    input_request: {
      ...{ kind: 'approval', source: 'plan', title: 'Step publish of a plan: publish', prompt: 'publish' },
      arguments: { plan_id, step_id: 'publish', description: 'publish' },
    },
  });
  const asked = await record.events(session_id, 'message.input_required');
  expect(asked).toEqual([expect.objectContaining({ message_id, kind: 'approval', source: 'plan' })]);
  expect(await resolve(message_id)).toBe('200 working');
  const decided = await readPlan(client, plan_id); // before the plan itself has looked
  expect(stepStates(decided)).toEqual({ draft: 'completed', publish: 'running', after: 'pending' });
  const { plans } = await client.ok('/plans/get', { session_id }, PlansGetResponse);
  expect(plans[0]?.progress).toEqual(decided.progress);
  const ended = await record.move(plan_id);
  expect(ended).toMatchObject({ state: 'completed', steps: [{}, { message_id, attempts: 1 }, {}] });
  expect(await approvalsOf({ message_id })).toMatchObject([{ source: 'plan', resolution: 'approved' }]);
});

test('a step that is rejected fails for good, and what depends on it is skipped', async () => {
  const { plan_id, message_id } = await asking();
  expect(await resolve(message_id, 'rejected')).toBe('200 failed');
  const failed = await record.move(plan_id, HOUR_MS);
  expect(stepStates(failed)).toEqual({ draft: 'completed', publish: 'failed', after: 'skipped' });
  expect(failed).toMatchObject({ failed_step: 1, error: { code: 'APPROVAL_REJECTED' } });
  expect(failed.steps[1]?.attempts).toBe(1);
});

test('a step that asks is withdrawn with its plan', async () => {
  const { plan_id, message_id } = await asking();
  await client.ok('/plans/cancel', { plan_id }, PlanResponse);
  await record.move(plan_id);
  expect((await client.message(message_id)).state).toBe('canceled');
  expect(await resolve(message_id)).toMatch(/^409 /);
});

const SECRET = { description: 'secret', steps: one };
const create = async (more: object = {}) => ({ session_id: await newSession(client), ...SECRET, ...more });

test('policies deny the creation of a plan, on the record', async () => {
  const match = { actions: ['create'], arguments: [{ path: 'description', op: 'contains', value: 'secret' }] };
  await withPolicy(client, { decision: 'deny', match }, async () => {
    const body = await create();
    expect(await client.failure('/plans/create', body)).toBe('403 forbidden');
    const [denied] = await record.events(body.session_id, 'policy.denied');
    expect(denied).toMatchObject({ action: 'create', reason: 'because' });
    expect(await client.failure('/plans/create', { ...body, description: 'open' })).toBe('200');
  });
});

test('policies demand an approval of a plan by several, and not by its creator', async () => {
  const evaluator = { approval: { quorum: 2, allow_self: false } };
  await withPolicy(client, { decision: 'require_approval', evaluator }, async () => {
    const { plan } = await client.ok('/plans/create', await create({ auto_approve: true }), PlanResponse);
    expect(plan).toMatchObject({ state: 'proposed', quorum: 2, approval_reason: 'because' });
    const { plan_id } = plan;
    const [first, second] = [await caller('admin'), await caller('admin')];
    for (const by of [client, await caller('read')])
      expect(await by.failure('/plans/approve', { plan_id })).toBe('403 forbidden');
    expect(await approve(plan_id, first)).toBe('proposed');
    expect(await first.failure('/plans/approve', { plan_id })).toBe('409 ALREADY_RESOLVED');
    expect(await approve(plan_id, second)).toBe('running');
    const ended = await record.move(plan_id);
    expect([ended.state, ended.decisions?.length]).toEqual(['completed', 2]);
  });
});

test('policies name approvers of a plan, remind, and escalate with the first reminder', async () => {
  const [named, boss, stranger] = [await person('read'), await person('read'), await caller('read')];
  const approval = { quorum: 2, reminder_seconds: 3_600, escalate_to: [boss.id] };
  const policy = { decision: 'require_approval', approvers: [named.id] };
  await withPolicy(client, { ...policy, evaluator: { approval } }, async () => {
    const { plan } = await client.ok('/plans/create', await create(), PlanResponse);
    const { plan_id, session_id, approval_expires_at: expires_at } = plan;
    expect(plan.approvers).toEqual([named.id]);
    for (const path of ['/plans/approve', '/plans/reject'])
      expect(await stranger.failure(path, { plan_id })).toBe('403 forbidden');
    expect(await approve(plan_id, named.client)).toBe('proposed');
    await record.move(plan_id);
    const reminded = await record.move(plan_id, HOUR_MS + 1);
    const event = {
      ...{ event_type: 'plan.approval_required', plan_id, session_id, expires_at, reason: 'because', guard: null },
      ...{ description: 'secret', request_id: plan.input_request?.request_id, title: 'Start a plan: secret' },
      policy_id: expect.stringMatching(/^pol_/),
    };
    const asked = await record.events(session_id, 'plan.approval_required');
    expect(asked).toEqual([event, { ...event, reminder: 1 }]);
    expect(reminded.approvers).toEqual([named.id, boss.id]);
    expect(await approve(plan_id, boss.client)).toBe('running');
  });
});

test('policies deny the approval of a plan', async () => {
  await withPolicy(client, { decision: 'deny', match: { actions: ['approve'] } }, async () => {
    const { plan_id } = await createPlan(client, one, { auto_approve: false });
    expect(await client.failure('/plans/approve', { plan_id })).toBe('403 forbidden');
    expect((await readPlan(client, plan_id)).state).toBe('proposed');
  });
});

test('policies deny a step, which is not tried again', async () => {
  await withPolicy(client, { decision: 'deny', match: { actions: ['step'], agent_types: ['echo'] } }, async () => {
    const failed = await record.run([step('a', 'echo', 'one', { max_attempts: 3 })]);
    expect(failed).toMatchObject({
      ...{ state: 'failed', error: { code: 'POLICY_DENIED', message: 'because' } },
      steps: [{ attempts: 0, message_id: null }],
    });
    const [denied] = await record.events(failed.session_id, 'policy.denied');
    expect(denied).toMatchObject({ action: 'step' });
  });
});

test('policies demand the approval of a step', async () => {
  await withPolicy(client, { decision: 'require_approval', match: { actions: ['step'] } }, async () => {
    const waiting = await record.run(one);
    const message_id = waiting.steps[0]?.message_id ?? '';
    expect((await client.message(message_id)).input_request).toMatchObject({ source: 'policy', prompt: 'because' });
    const asked = await record.events(waiting.session_id, 'policy.approval_required');
    expect(asked).toMatchObject([{ action: 'step', message_id }]);
    expect(await resolve(message_id)).toBe('200 working');
    expect((await record.move(waiting.plan_id)).state).toBe('completed');
  });
});

test('a step that requires approval, also by a policy, is approved once, by one who may give both', async () => {
  const reader = await caller('read');
  const policy = { decision: 'require_approval', match: { actions: ['step'] }, approvers: ['scope:read'] };
  await withPolicy(client, { ...policy, evaluator: { approval: { quorum: 2 } } }, async () => {
    const { plan_id, steps } = await record.run([step('a', 'echo', 'one', { requires_approval: true })]);
    const messageId = steps[0]?.message_id ?? '';
    expect((await client.message(messageId)).input_request).toMatchObject({ source: 'policy', quorum: 2 });
    expect(await resolve(messageId, 'approved', reader)).toBe('403 forbidden');
    expect(await resolve(messageId)).toBe('200 input-required');
    expect(await resolve(messageId, 'approved', await caller('admin'))).toBe('200 working');
    expect((await record.move(plan_id)).state).toBe('completed');
    const without = await record.run(one);
    expect(await resolve(without.steps[0]?.message_id, 'approved', reader)).toBe('200 input-required');
  });
});

test.each([
  ['has been revoked', 'UPDATE credentials SET revoked_at = now() WHERE credential_id = $1'],
  ['has expired', "UPDATE credentials SET expires_at = now() - interval '1 s' WHERE credential_id = $1"],
])('a plan whose creator %s sends nothing more', async (_what, end) => {
  const { id, client: creator } = await person('read');
  const { plan } = await creator.ok('/plans/create', await create(), PlanResponse);
  await api.database.query(end, [id]);
  await approve(plan.plan_id);
  const failed = await record.move(plan.plan_id);
  expect(failed).toMatchObject({ state: 'failed', steps: [{ error: { code: 'unauthorized' }, message_id: null }] });
});

test('a plan and a step that nobody approves in time are refused', async () => {
  const proposed = await createPlan(client, one, { auto_approve: false });
  const rejected = await record.move(proposed.plan_id, 48 * HOUR_MS);
  expect(rejected).toMatchObject({
    ...{ state: 'rejected', error: { code: 'APPROVAL_EXPIRED' } },
    decisions: [{ resolution: 'expired', principal: { type: 'system' } }],
  });
  expect(await client.failure('/plans/approve', { plan_id: proposed.plan_id })).toBe('409 ALREADY_TERMINAL');
  expect(await record.events(proposed.session_id, 'plan.rejected')).toHaveLength(1);
  const { plan_id, message_id } = await asking();
  await record.look(message_id, 48 * HOUR_MS);
  expect((await record.move(plan_id)).error).toMatchObject({ code: 'APPROVAL_EXPIRED' });
});

test('a step for which the platform has no room is tried again after pauses that grow', async () => {
  const narrow = await serveApi({ tenantMaxQueued: 1 });
  const fleet = new PlanRecord(narrow);
  for (const type of ['echo', 'busy']) await fleet.agent(type);
  const ids: string[] = [];
  await until(async () => {
    const { status, body } = await narrow.client.rpc('wait', { metadata: { agent_type: 'busy' }, blocking: false });
    if (status === 200) ids.push((body as { result: Task }).result.id);
    return status === 429; // they are counted once a second
  });
  const { plan_id } = await fleet.run(one);
  const postponed = async () => {
    const [row] = await narrow.database.query<{ postponed: number; ms: number }>(
      'SELECT postponed, extract(epoch FROM retry_at - now())::float8 * 1000 AS ms FROM plan_steps WHERE plan_id = $1',
      [plan_id],
    );
    return row;
  };
  const first = await postponed();
  expect(first).toMatchObject({ postponed: 1 });
  await fleet.move(plan_id, (first?.ms ?? 0) + 200);
  const second = await postponed();
  expect(second?.postponed).toBeGreaterThan(1);
  expect(second?.ms).toBeGreaterThan((first?.ms ?? 0) + 500);
  for (const message_id of ids) await narrow.client.post('/messages/cancel', { message_id });
  await until(async () => (await fleet.move(plan_id, 3_600_000)).state === 'completed');
});

test('a step beyond the quota of its tenant waits for the quota, which is no attempt', async () => {
  const setLimits = (messages_per_day: number | null) =>
    client.ok('/tenants/set_limits', { messages_per_day }, TenantLimitsResponse);
  const { day_ends_at } = await setLimits(0);
  const waits = await record.run(one);
  expect(waits.steps[0]).toMatchObject({
    ...{ state: 'pending', attempts: 0 },
    error: { code: 'QUOTA_EXCEEDED', message: expect.stringContaining('0 messages') },
  });
  const retryAt = await api.database.value<Date>('SELECT retry_at FROM plan_steps WHERE plan_id = $1', [waits.plan_id]);
  const looksAgainAt = Math.min(Date.parse(day_ends_at), Date.now() + 900_000);
  expect(Math.abs((retryAt?.getTime() ?? 0) - looksAgainAt)).toBeLessThan(60_000);
  await setLimits(null);
  const [ended] = (await record.move(waits.plan_id, HOUR_MS)).steps;
  expect(ended).toMatchObject({ state: 'completed', attempts: 1 });
  expect(ended).not.toHaveProperty('error');
});
