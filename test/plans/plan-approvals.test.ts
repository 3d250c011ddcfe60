import { beforeAll, describe, expect, test } from 'vitest';
import { ResolveResponse } from '../../contracts/api/messages.js';
import { PlanResponse } from '../../contracts/api/plans.js';
import { GetApprovalsResponse } from '../../contracts/api/policies/approvals.js';
import { PolicyResponse } from '../../contracts/api/policies/policies.js';
import { GetEventsResponse } from '../../contracts/api/telemetry.js';
import { TenantLimitsResponse } from '../../contracts/api/tenants.js';
import { echo } from '../setup/agent.js';
import { ApiClient } from '../setup/platform/api-client.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { PATHS } from '../setup/platform/paths.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { gate, until } from '../setup/until.js';
import { createPlan, newSession, readPlan, step, stepStates, untilPlan, untilStep } from './plan-fixture.js';

let shared: SharedPlatform;
let client: ApiClient;

/** Creates a policy of scope `plan` for one test; the function that is given back removes it. */
async function withPolicy(policy: object, work: () => Promise<void>): Promise<void> {
  const body = { scope: 'plan', name: 'a policy', reason: 'because', ...policy };
  const { policy_id } = (await client.ok('/policies/create_policy', body, PolicyResponse)).policy;
  try {
    await work();
  } finally {
    await client.post('/policies/delete_policy', { policy_id });
  }
}

async function another(scopes: string[]): Promise<{ id: string; caller: ApiClient }> {
  const { body } = await client.post('/credentials/create', { name: 'other', scopes });
  const { credential, client_secret } = body as { credential: { client_id: string }; client_secret: string };
  const { client_id } = credential;
  return { id: client_id, caller: new ApiClient(shared.platform, { client_id, client_secret }) };
}

const anotherCaller = async (scopes: string[]): Promise<ApiClient> => (await another(scopes)).caller;

const setLimits = (limits: object) => client.ok('/tenants/set_limits', limits, TenantLimitsResponse);

/** The events of a type in a session. */
async function eventsOf(session_id: string, type: string): Promise<Record<string, unknown>[]> {
  const { events } = await client.ok('/telemetry/get_events', { session_id, type }, GetEventsResponse);
  return events.map(({ event }) => event);
}

const resolve = (messageId: string | null | undefined, resolution: string) =>
  client.ok(`/messages/${messageId}/resolve`, { resolution }, ResolveResponse);

describe.each(PATHS)('$way', ({ env }) => {
  beforeAll(async () => {
    shared = await startPlatform(env);
    client = shared.platform.client;
    await joinAgent(shared.platform, { instanceId: 'echo-1', agentType: 'echo', maxConcurrentSessions: 0 }, echo);
    return shared.dispose;
  });

  describe('a step that requires approval', () => {
    const steps = [
      step('draft', 'echo', 'hello'),
      step('publish', 'echo', 'publish {{steps.draft.output}}', { requires_approval: true, max_attempts: 2 }),
      step('after', 'echo', '{{steps.publish.output}}'),
    ];

    test('asks a human, shows what would be sent, and goes on when it is approved', async () => {
      const plan = await createPlan(client, steps);
      const waiting = await untilStep(client, plan.plan_id, 'publish', 'input-required');
      const messageId = waiting.steps[1]?.message_id ?? '';
      const message = await client.message(messageId);
      expect(message).toMatchObject({ state: 'input-required', user_input: 'publish echo: hello' });
      expect(message.input_request).toMatchObject({
        ...{ kind: 'approval', source: 'plan', title: 'Step publish of a plan: publish' },
        prompt: 'publish',
        arguments: { plan_id: plan.plan_id, step_id: 'publish', description: 'publish' },
      });
      expect(await eventsOf(plan.session_id, 'message.input_required')).toEqual([
        expect.objectContaining({ message_id: messageId, kind: 'approval', source: 'plan' }),
      ]);
      await resolve(messageId, 'approved');
      const done = await untilPlan(client, plan.plan_id, 'completed');
      expect(done.steps[1]).toMatchObject({ message_id: messageId, attempts: 1 });
      const { approvals } = await client.ok('/messages/get_approvals', { message_id: messageId }, GetApprovalsResponse);
      expect(approvals).toEqual([expect.objectContaining({ source: 'plan', resolution: 'approved' })]);
    });

    test('fails when it is rejected, for good, and what depends on it is skipped', async () => {
      const plan = await createPlan(client, steps);
      const waiting = await untilStep(client, plan.plan_id, 'publish', 'input-required');
      await resolve(waiting.steps[1]?.message_id, 'rejected');
      const failed = await untilPlan(client, plan.plan_id, 'failed');
      expect(stepStates(failed)).toEqual({ draft: 'completed', publish: 'failed', after: 'skipped' });
      expect(failed).toMatchObject({ failed_step: 1, error: { code: 'APPROVAL_REJECTED' } });
      expect(failed.steps[1]?.attempts).toBe(1);
    });

    test('is withdrawn with its plan', async () => {
      const plan = await createPlan(client, steps);
      const waiting = await untilStep(client, plan.plan_id, 'publish', 'input-required');
      const messageId = waiting.steps[1]?.message_id ?? '';
      await client.ok('/plans/cancel', { plan_id: plan.plan_id }, PlanResponse);
      await client.untilState(messageId, 'canceled');
      expect(await client.failure(`/messages/${messageId}/resolve`, { resolution: 'approved' })).toMatch(/^409 /);
    });
  });

  describe('policies of scope plan', () => {
    const steps = [step('a', 'echo', 'one')];
    const create = async (more: object = {}) => ({
      session_id: await newSession(client),
      description: 'secret',
      steps,
      ...more,
    });

    test('deny the creation of a plan, on the record', async () => {
      const match = { actions: ['create'], arguments: [{ path: 'description', op: 'contains', value: 'secret' }] };
      await withPolicy({ decision: 'deny', match }, async () => {
        const body = await create();
        expect(await client.failure('/plans/create', body)).toBe('403 forbidden');
        expect(await eventsOf(body.session_id, 'policy.denied')).toMatchObject([
          { action: 'create', reason: 'because' },
        ]);
        expect(await client.failure('/plans/create', { ...body, description: 'open' })).toBe('200');
      });
    });

    test('demand an approval of a plan by several, and not by its creator', async () => {
      const evaluator = { approval: { quorum: 2, allow_self: false } };
      await withPolicy({ decision: 'require_approval', match: { actions: ['create'] }, evaluator }, async () => {
        const body = await create({ auto_approve: true });
        const { plan } = await client.ok('/plans/create', body, PlanResponse);
        expect(plan).toMatchObject({ state: 'proposed', quorum: 2, approval_reason: 'because' });
        const { plan_id } = plan;
        const [first, second, reader] = [
          await anotherCaller(['admin']),
          await anotherCaller(['admin']),
          await anotherCaller(['read']),
        ];
        expect(await client.failure('/plans/approve', { plan_id })).toBe('403 forbidden');
        expect(await reader.failure('/plans/approve', { plan_id })).toBe('403 forbidden');
        expect((await first.ok('/plans/approve', { plan_id }, PlanResponse)).plan.state).toBe('proposed');
        expect(await first.failure('/plans/approve', { plan_id })).toBe('409 ALREADY_RESOLVED');
        expect((await second.ok('/plans/approve', { plan_id }, PlanResponse)).plan.state).toBe('running');
        expect((await untilPlan(client, plan_id, 'completed')).decisions).toHaveLength(2);
      });
    });

    test('name approvers of a plan, remind, and escalate with the first reminder', async () => {
      const [named, boss, stranger] = [await another(['read']), await another(['read']), await another(['read'])];
      const approval = { quorum: 2, reminder_seconds: 1, escalate_to: [boss.id] };
      const policy = { decision: 'require_approval', match: { actions: ['create'] }, approvers: [named.id] };
      await withPolicy({ ...policy, evaluator: { approval } }, async () => {
        const body = await create();
        const { plan } = await client.ok('/plans/create', body, PlanResponse);
        const { plan_id, session_id, approval_expires_at: expires_at } = plan;
        expect(plan.approvers).toEqual([named.id]);
        expect(await stranger.caller.failure('/plans/approve', { plan_id })).toBe('403 forbidden');
        expect(await stranger.caller.failure('/plans/reject', { plan_id })).toBe('403 forbidden');
        expect((await named.caller.ok('/plans/approve', { plan_id }, PlanResponse)).plan.state).toBe('proposed');
        const asked = await until(async () => {
          const found = await eventsOf(session_id, 'plan.approval_required');
          return found.length > 1 && found;
        });
        const request = { request_id: plan.input_request?.request_id, title: 'Start a plan: secret' };
        const event = {
          plan_id,
          session_id,
          description: 'secret',
          reason: 'because',
          guard: null,
          expires_at,
          ...request,
        };
        expect(asked).toContainEqual({ ...event, policy_id: expect.stringMatching(/^pol_/) });
        expect(asked).toContainEqual({ ...event, policy_id: expect.stringMatching(/^pol_/), reminder: 1 });
        expect((await readPlan(client, plan_id)).approvers).toEqual([named.id, boss.id]);
        expect((await boss.caller.ok('/plans/approve', { plan_id }, PlanResponse)).plan.state).toBe('running');
        await untilPlan(client, plan_id, 'completed');
      });
    });

    test('deny the approval of a plan', async () => {
      await withPolicy({ decision: 'deny', match: { actions: ['approve'] } }, async () => {
        const { plan_id } = await createPlan(client, steps, { auto_approve: false });
        expect(await client.failure('/plans/approve', { plan_id })).toBe('403 forbidden');
        expect((await readPlan(client, plan_id)).state).toBe('proposed');
      });
    });

    test('deny a step, which is not tried again', async () => {
      await withPolicy({ decision: 'deny', match: { actions: ['step'], agent_types: ['echo'] } }, async () => {
        const plan = await createPlan(client, [step('a', 'echo', 'one', { max_attempts: 3 })]);
        const failed = await untilPlan(client, plan.plan_id, 'failed');
        expect(failed).toMatchObject({ error: { code: 'POLICY_DENIED', message: 'because' } });
        expect(failed.steps[0]).toMatchObject({ attempts: 0, message_id: null });
        expect(await eventsOf(plan.session_id, 'policy.denied')).toMatchObject([{ action: 'step' }]);
      });
    });

    test('demand the approval of a step', async () => {
      await withPolicy({ decision: 'require_approval', match: { actions: ['step'] } }, async () => {
        const plan = await createPlan(client, steps);
        const waiting = await untilStep(client, plan.plan_id, 'a', 'input-required');
        const messageId = waiting.steps[0]?.message_id ?? '';
        expect((await client.message(messageId)).input_request).toMatchObject({ source: 'policy', prompt: 'because' });
        expect(await eventsOf(plan.session_id, 'policy.approval_required')).toMatchObject([
          { action: 'step', message_id: messageId },
        ]);
        await resolve(messageId, 'approved');
        await untilPlan(client, plan.plan_id, 'completed');
      });
    });

    test('and a step that requires approval is approved once, by one who may give both', async () => {
      const reader = await anotherCaller(['read']);
      const policy = { decision: 'require_approval', match: { actions: ['step'] }, approvers: ['scope:read'] };
      await withPolicy({ ...policy, evaluator: { approval: { quorum: 2 } } }, async () => {
        const asking = [step('a', 'echo', 'one', { requires_approval: true })];
        const plan = await createPlan(client, asking);
        const waiting = await untilStep(client, plan.plan_id, 'a', 'input-required');
        const messageId = waiting.steps[0]?.message_id ?? '';
        expect((await client.message(messageId)).input_request).toMatchObject({ source: 'policy', quorum: 2 });
        const approve = (caller: ApiClient) =>
          caller.failure(`/messages/${messageId}/resolve`, { resolution: 'approved' });
        expect(await approve(reader)).toBe('403 forbidden');
        expect([await approve(client), await approve(await anotherCaller(['admin']))]).toEqual(['200', '200']);
        await untilPlan(client, plan.plan_id, 'completed');
        const without = await createPlan(client, steps);
        const asked = (await untilStep(client, without.plan_id, 'a', 'input-required')).steps[0]?.message_id;
        expect(await reader.failure(`/messages/${asked}/resolve`, { resolution: 'approved' })).toBe('200');
      });
    });
  });

  test.each([
    ['has been revoked', 'UPDATE credentials SET revoked_at = now() WHERE credential_id = $1'],
    ['has expired', "UPDATE credentials SET expires_at = now() - interval '1 s' WHERE credential_id = $1"],
  ])('a plan whose creator %s sends nothing more', async (_what, end) => {
    const { id, caller: creator } = await another(['read']);
    const body = { session_id: await newSession(client), description: 'x', steps: [step('a', 'echo', 'one')] };
    const { plan } = await creator.ok('/plans/create', body, PlanResponse);
    await shared.database.query(end, [id]);
    await client.ok('/plans/approve', { plan_id: plan.plan_id }, PlanResponse);
    const failed = await untilPlan(client, plan.plan_id, 'failed');
    expect(failed.steps[0]).toMatchObject({ error: { code: 'unauthorized' }, message_id: null });
  });
});

describe('with short times and little room', () => {
  beforeAll(async () => {
    shared = await startPlatform({ INPUT_EXPIRY_MS: '1500', TENANT_MAX_IN_FLIGHT: '1' });
    client = shared.platform.client;
    await joinAgent(shared.platform, { instanceId: 'echo-1', agentType: 'echo', maxConcurrentSessions: 0 }, echo);
    return shared.dispose;
  });

  test('a plan and a step that nobody approves in time are refused', async () => {
    const proposed = await createPlan(client, [step('a', 'echo', 'one')], { auto_approve: false });
    const asking = await createPlan(client, [step('a', 'echo', 'one', { requires_approval: true })]);
    const rejected = await untilPlan(client, proposed.plan_id, 'rejected');
    expect(rejected).toMatchObject({
      error: { code: 'APPROVAL_EXPIRED' },
      decisions: [{ resolution: 'expired', principal: { type: 'system' } }],
    });
    expect(await client.failure('/plans/approve', { plan_id: proposed.plan_id })).toBe('409 ALREADY_TERMINAL');
    await until(async () => (await eventsOf(proposed.session_id, 'plan.rejected')).length === 1);
    const failed = await untilPlan(client, asking.plan_id, 'failed');
    expect(failed.error).toMatchObject({ code: 'APPROVAL_EXPIRED' });
  });

  test('a step for which the platform has no room is tried again after pauses that grow', async () => {
    const busy = gate<string>();
    await joinAgent(shared.platform, { instanceId: 'busy-1', agentType: 'busy' }, async (dispatch) =>
      dispatch.result(await busy.promise),
    );
    const { id } = await client.send('wait', { metadata: { agent_type: 'busy' }, blocking: false });
    const { plan_id } = await createPlan(client, [step('a', 'echo', 'one')]);
    const postponed = (times: number) =>
      until(async () => {
        const [row] = await shared.database.query<{ postponed: number; retry_at: Date }>(
          'SELECT postponed, retry_at FROM plan_steps WHERE plan_id = $1 AND postponed >= $2 AND retry_at IS NOT NULL',
          [plan_id, times],
        );
        return row;
      });
    const first = await postponed(1);
    const second = await postponed(first.postponed + 1);
    expect(second.retry_at.getTime() - first.retry_at.getTime()).toBeGreaterThanOrEqual(2_000);
    busy.open('done');
    await client.untilState(id, 'completed');
    await untilPlan(client, plan_id, 'completed');
  });

  test('a step beyond the quota of its tenant waits for the quota, which is no attempt', async () => {
    const { day_ends_at } = await setLimits({ messages_per_day: 0 });
    const { plan_id } = await createPlan(client, [step('a', 'echo', 'one')]);
    const [row] = await until(async () => {
      const rows = await shared.database.query<{ state: string; attempts: number; retry_at: Date }>(
        'SELECT state, attempts, retry_at FROM plan_steps WHERE plan_id = $1 AND postponed > 0',
        [plan_id],
      );
      return rows.length > 0 && rows;
    });
    expect(row).toMatchObject({ state: 'pending', attempts: 0 });
    const [waits] = (await untilPlan(client, plan_id, 'running')).steps;
    expect(waits).toMatchObject({
      state: 'pending',
      error: { code: 'QUOTA_EXCEEDED', message: expect.stringContaining('0 messages') },
    });
    const looksAgainAt = Math.min(Date.parse(day_ends_at), Date.now() + 900_000);
    expect(Math.abs((row?.retry_at.getTime() ?? 0) - looksAgainAt)).toBeLessThan(60_000);
    await setLimits({ messages_per_day: null });
    await shared.database.query(
      `WITH due AS (UPDATE plan_steps SET retry_at = now() WHERE plan_id = $1 RETURNING tenant_id, plan_id)
       INSERT INTO plan_wakes (tenant_id, plan_id) SELECT tenant_id, plan_id FROM due`,
      [plan_id],
    );
    const [done] = (await untilPlan(client, plan_id, 'completed')).steps;
    expect(done).toMatchObject({ attempts: 1 });
    expect(done).not.toHaveProperty('error');
  });
});
