import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { ResolveResponse } from '../../contracts/api/messages.js';
import { PlanResponse } from '../../contracts/api/plans.js';
import { GetEventsResponse } from '../../contracts/api/telemetry.js';
import { type Behaviour, type Dispatched, echo, type RawAgent, silent } from '../setup/agent.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { PATHS } from '../setup/platform/paths.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { until } from '../setup/until.js';
import { createPlan, newSession, readPlan, step, stepStates, untilPlan, untilStep } from './plan-fixture.js';

let shared: SharedPlatform;
let client: ApiClient;

const join = (agentType: string, behaviour?: Behaviour): Promise<RawAgent> =>
  joinAgent(shared.platform, { instanceId: `${agentType}-1`, agentType, maxConcurrentSessions: 0 }, behaviour);

/** The plan events of a session, the oldest first, each with its type. */
async function planEvents(sessionId: string): Promise<Record<string, unknown>[]> {
  const query = { session_id: sessionId, category: 'plan' };
  const { events } = await client.ok('/telemetry/get_events', query, GetEventsResponse);
  return events.map(({ event_type, event }) => ({ event_type, ...event })).reverse();
}

describe.each(PATHS)('$way', ({ env }) => {
  beforeAll(async () => {
    shared = await startPlatform(env);
    client = shared.platform.client;
    await join('echo', echo);
    return shared.dispose;
  });

  test('a plan whose second step uses the output of the first is carried out and completed', async () => {
    const plan = await createPlan(client, [
      step('first', 'echo', 'one'),
      step('second', 'echo', [{ kind: 'text', text: 'after {{steps.first.output}}' }], { depends_on: ['first'] }),
    ]);
    expect(plan).toMatchObject({ state: 'running', auto_approve: true, progress: { total: 2 } });
    const done = await untilPlan(client, plan.plan_id, 'completed');
    expect(stepStates(done)).toEqual({ first: 'completed', second: 'completed' });
    const [first, second] = done.steps;
    expect(second?.worker).toMatchObject({ agent_type: 'echo', instance_id: 'echo-1' });
    const message = await client.message(second?.message_id ?? '');
    expect(message).toMatchObject({ session_id: plan.session_id, user_input: 'after echo: one', role: 'user' });
    expect(message.assistant_output).toBe('echo: after echo: one');
    expect(first?.attempts).toBe(1);
  });

  test('its events say that it was created, approved and completed', async () => {
    const plan = await createPlan(client, [step('only', 'echo', 'one')]);
    await untilPlan(client, plan.plan_id, 'completed');
    const { plan_id, session_id, created_by } = plan;
    expect(await planEvents(session_id)).toEqual([
      { event_type: 'plan.created', plan_id, session_id, step_count: 1, description: 'a plan' },
      { event_type: 'plan.approved', plan_id, approved_by: created_by },
      {
        event_type: 'plan.completed',
        ...{ plan_id, session_id, steps_completed: 1, duration_ms: expect.any(Number) },
      },
    ]);
  });

  test('no more steps are under way at once than it allows, and those that may go at once do', async () => {
    const held: Dispatched[] = [];
    await join('holding', (dispatch) => void held.push(dispatch));
    const steps = ['a', 'b', 'c', 'd', 'e'].map((id) => step(id, 'holding', id));
    const plan = await createPlan(client, steps, { max_parallel: 2 });
    let most = 0;
    for (let answered = 0; answered < steps.length; answered += 1) {
      await until(() => held.length >= Math.min(2, steps.length - answered), { what: 'two steps under way' });
      most = Math.max(most, held.length);
      held.shift()?.result('done');
    }
    const done = await untilPlan(client, plan.plan_id, 'completed');
    expect(most).toBe(2);
    expect(done.progress).toMatchObject({ total: 5, completed: 5 });
  });

  test('what depends on a failed step is skipped, the rest goes on, and the plan fails with the first failure', async () => {
    await join('failing', (dispatch) => dispatch.error('HANDLER_ERROR', 'it broke'));
    const plan = await createPlan(client, [
      step('fine', 'echo', 'one'),
      step('broken', 'failing', 'two'),
      step('after', 'echo', 'three', { depends_on: ['broken'] }),
      step('after_that', 'echo', '{{steps.after.output}}'),
      step('beside', 'echo', 'four', { depends_on: ['fine'] }),
    ]);
    const failed = await untilPlan(client, plan.plan_id, 'failed');
    expect(stepStates(failed)).toEqual({
      ...{ fine: 'completed', broken: 'failed', after: 'skipped', after_that: 'skipped', beside: 'completed' },
    });
    expect(failed).toMatchObject({ failed_step: 1, error: { code: 'HANDLER_ERROR', message: 'it broke' } });
    const { plan_id, session_id } = plan;
    const failure = { event_type: 'plan.failed', plan_id, session_id, failed_step: 1, error: 'HANDLER_ERROR' };
    expect((await planEvents(session_id)).at(-1)).toEqual(failure);
  });

  test('a step is tried again as often as it may be, each time as a message of its own', async () => {
    const seen: { message_id: string; plan: unknown }[] = [];
    await join('unsteady', (dispatch) => {
      const { message_id } = dispatch.payload.session_context;
      seen.push({ message_id, plan: dispatch.payload.params.metadata?.plan });
      if (seen.length < 3) dispatch.error('HANDLER_ERROR', 'not yet');
      else dispatch.result('at last');
    });
    const plan = await createPlan(client, [step('a', 'unsteady', 'try', { max_attempts: 3 })]);
    const done = await untilPlan(client, plan.plan_id, 'completed');
    expect(done.steps[0]).toMatchObject({ attempts: 3, message_id: seen[2]?.message_id });
    expect(done.steps[0]).not.toHaveProperty('error');
    expect(new Set(seen.map(({ message_id }) => message_id)).size).toBe(3);
    const { plan_id } = plan;
    expect(seen.map((each) => each.plan)).toEqual([1, 2, 3].map((attempt) => ({ plan_id, step_id: 'a', attempt })));
  });

  test('a step that is out of time fails, its agent hears of it, and it is not tried again', async () => {
    const agent = await join('silent', silent);
    const more = { timeout_seconds: 1, max_attempts: 3 };
    const plan = await createPlan(client, [step('a', 'silent', 'wait', more)]);
    const failed = await untilPlan(client, plan.plan_id, 'failed');
    expect(failed.steps[0]).toMatchObject({ state: 'failed', attempts: 1, error: { code: 'DEADLINE_EXCEEDED' } });
    await agent.nextOfType('dispatch');
    await until(async () => (await client.message(failed.steps[0]?.message_id ?? '')).state !== 'working');
  });

  test('the time for which a step waits for a human does not count', async () => {
    await join('asking', (dispatch) => {
      if (dispatch.payload.params.metadata?.resolution) dispatch.result('thanks');
      else dispatch.ask({ kind: 'confirmation', title: 'Go on?' });
    });
    const plan = await createPlan(client, [
      step('a', 'asking', 'ask', { timeout_seconds: 5 }),
      step('b', 'silent', 'wait', { timeout_seconds: 6 }),
    ]);
    const waiting = await untilStep(client, plan.plan_id, 'a', 'input-required');
    expect(waiting).toMatchObject({ state: 'running', progress: { 'input-required': 1 } });
    await untilStep(client, plan.plan_id, 'b', 'failed'); // the time of the first is over by then
    const messageId = waiting.steps[0]?.message_id ?? '';
    await client.ok(`/messages/${messageId}/resolve`, { resolution: 'confirmed' }, ResolveResponse);
    const ended = await untilPlan(client, plan.plan_id, 'failed');
    expect(stepStates(ended)).toEqual({ a: 'completed', b: 'failed' });
  });

  test('a step that nobody can do fails with the reason', async () => {
    const plan = await createPlan(client, [step('a', 'unknown-type', 'do')]);
    const failed = await untilPlan(client, plan.plan_id, 'failed');
    expect(failed.steps[0]).toMatchObject({ state: 'failed', error: { code: 'TARGET_UNAVAILABLE' } });
  });

  test('a message that outputs make too large fails its step', async () => {
    await join('verbose', (dispatch) => dispatch.result('x'.repeat(200_000)));
    const plan = await createPlan(client, [
      step('a', 'verbose', 'talk'),
      step('b', 'echo', '{{steps.a.output}}{{steps.a.output}}', { max_attempts: 3 }),
    ]);
    const failed = await untilPlan(client, plan.plan_id, 'failed');
    expect(failed).toMatchObject({ failed_step: 1, error: { code: 'PAYLOAD_TOO_LARGE' } });
    expect(failed.steps[1]).toMatchObject({ attempts: 0, message_id: null });
  });

  test('an output that is used ten thousand times fails its step before anything of that size is made', async () => {
    await join('endless', (dispatch) => dispatch.result('x'.repeat(900_000)));
    const plan = await createPlan(client, [
      step('a', 'endless', 'talk'),
      step('b', 'echo', '{{steps.a.output}}'.repeat(10_000)),
      step('c', 'echo', 'beside it'),
    ]);
    const failed = await untilPlan(client, plan.plan_id, 'failed');
    expect(stepStates(failed)).toEqual({ a: 'completed', b: 'failed', c: 'completed' });
    expect(failed.error).toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      message: expect.stringMatching(/more than 262144/),
    });
  });

  describe('a proposed plan', () => {
    const propose = () => createPlan(client, [step('a', 'echo', 'one')], { auto_approve: false });

    test('sends nothing until it is approved, once', async () => {
      const { plan_id, session_id, state, approval_expires_at } = await propose();
      expect({ state, approval_expires_at }).toEqual({ state: 'proposed', approval_expires_at: expect.any(String) });
      const body = { plan_id, comment: 'go' };
      const answers = await Promise.all(Array.from({ length: 20 }, () => client.failure('/plans/approve', body)));
      expect(answers.filter((answer) => answer === '200')).toHaveLength(1);
      expect(answers.filter((answer) => answer === '409 ALREADY_RESOLVED')).toHaveLength(19);
      const done = await untilPlan(client, plan_id, 'completed');
      expect(done.decisions).toEqual([expect.objectContaining({ resolution: 'approved', comment: 'go' })]);
      expect((await planEvents(session_id)).map(({ event_type }) => event_type)).toEqual([
        ...['plan.created', 'plan.approval_required', 'plan.approved', 'plan.completed'],
      ]);
      expect(await client.failure('/plans/approve', { plan_id })).toBe('409 ALREADY_TERMINAL');
      expect(await client.failure('/plans/cancel', { plan_id })).toBe('409 ALREADY_TERMINAL');
    });

    test('that is rejected runs nothing', async () => {
      const { plan_id, session_id } = await propose();
      const { plan } = await client.ok('/plans/reject', { plan_id, comment: 'no' }, PlanResponse);
      expect(plan).toMatchObject({ state: 'rejected', error: { code: 'APPROVAL_REJECTED' } });
      expect(plan.decisions).toMatchObject([{ resolution: 'rejected', comment: 'no' }]);
      expect(plan.steps[0]).toMatchObject({ state: 'skipped', message_id: null });
      expect(await client.failure('/plans/approve', { plan_id })).toBe('409 ALREADY_TERMINAL');
      const rejected = {
        event_type: 'plan.rejected',
        plan_id,
        session_id,
        rejected_by: plan.decisions[0]?.principal.id,
      };
      expect((await planEvents(session_id)).at(-1)).toEqual(rejected);
    });

    test('keeps its session from idling out', async () => {
      const session_id = await newSession(client, { idle_timeout_seconds: 1 });
      const other = await newSession(client, { idle_timeout_seconds: 1 });
      const plan = await createPlan(client, [step('a', 'echo', 'one')], { session_id, auto_approve: false });
      const statusOf = async (id: string) =>
        (await client.post('/sessions/get_by_id', { session_id: id })).body as { session: { status: string } };
      await until(async () => (await statusOf(other)).session.status === 'expired');
      await client.ok('/plans/approve', { plan_id: plan.plan_id }, PlanResponse);
      expect((await untilPlan(client, plan.plan_id, 'completed')).session_id).toBe(session_id);
    });
  });

  describe('a plan that is canceled', () => {
    const start = async (more: object = {}) => {
      const agentType = `working-${randomUUID()}`;
      const agent = await join(agentType, silent);
      const steps = [step('a', agentType, 'go'), step('b', 'echo', 'then', { depends_on: ['a'] })];
      const plan = await createPlan(client, steps, { ...more });
      const dispatch = await agent.nextOfType('dispatch');
      await untilStep(client, plan.plan_id, 'a', 'running');
      // A wake-up that is on its way would start a workflow that was ended anew.
      await until(async () => (await shared.database.query('SELECT 1 FROM plan_wakes')).length === 0);
      return { plan, agent, dispatch };
    };

    test('cancels the messages under way, and starts no further step', async () => {
      const { plan, agent, dispatch } = await start();
      const { plan_id, session_id } = plan;
      const canceled = (await client.ok('/plans/cancel', { plan_id, reason: 'enough' }, PlanResponse)).plan;
      expect(canceled).toMatchObject({ state: 'canceled', error: { code: 'CANCELED', message: 'enough' } });
      expect(stepStates(canceled)).toEqual({ a: 'failed', b: 'skipped' });
      const error = await agent.next((frame) => frame.type === 'error' && frame.in_reply_to === dispatch.id);
      expect(error.payload).toMatchObject({ code: 'CANCELED' });
      expect((await client.message(canceled.steps[0]?.message_id ?? '')).state).toBe('canceled');
      const event = { event_type: 'plan.canceled', plan_id, session_id, reason: 'enough' };
      expect((await planEvents(session_id)).at(-1)).toEqual(event);
    });

    test('with its session', async () => {
      const { plan, agent } = await start();
      expect(await client.failure('/sessions/close', { session_id: plan.session_id })).toBe('200');
      await agent.nextOfType('error');
      const canceled = await untilPlan(client, plan.plan_id, 'canceled');
      expect(stepStates(canceled)).toEqual({ a: 'failed', b: 'skipped' });
    });

    test('by an operator in the Temporal UI', async () => {
      const { plan, agent } = await start();
      await shared.temporal.workflow.getHandle(`plan:${plan.tenant_id}:${plan.plan_id}`).cancel();
      const canceled = await untilPlan(client, plan.plan_id, 'canceled');
      expect(canceled.error?.message).toMatch(/operator/);
      await agent.nextOfType('error');
    });

    test('because its workflow was terminated', async () => {
      const { plan, agent } = await start();
      await shared.temporal.workflow.getHandle(`plan:${plan.tenant_id}:${plan.plan_id}`).terminate('test');
      const { plan_id } = plan;
      const ended = await until(async () => {
        await shared.database.query('UPDATE plans SET check_at = now() WHERE check_at IS NOT NULL');
        const found = await readPlan(client, plan_id);
        return found.state !== 'running' && found;
      });
      expect(ended).toMatchObject({ state: 'canceled', error: { message: expect.stringMatching(/operator/) } });
      await agent.nextOfType('error');
    });
  });

  describe('what is refused', () => {
    const steps = [step('a', 'echo', 'one')];
    const refusal = async (body: object) =>
      client.failure('/plans/create', { session_id: await newSession(client), description: 'x', steps, ...body });

    test.each([
      ['no steps', { steps: [] }],
      ['an unknown dependency', { steps: [step('a', 'echo', 'one', { depends_on: ['b'] })] }],
      ['a cycle', { steps: [step('a', 'echo', '{{steps.b.output}}'), step('b', 'echo', 'x', { depends_on: ['a'] })] }],
      ['201 steps', { steps: Array.from({ length: 201 }, (_, index) => step(`s${index}`, 'echo', 'x')) }],
      ['an unknown field', { priority: 1 }],
      ['a step without a message', { steps: [{ description: 'x' }] }],
    ])('a plan with %s: 400', async (_what, body) => {
      expect(await refusal(body)).toBe('400 BAD_REQUEST');
    });

    test('a plan in a session that is not there, or has ended', async () => {
      expect(await refusal({ session_id: 'ses_none' })).toBe('404 NOT_FOUND');
      const session_id = await newSession(client);
      await client.post('/sessions/close', { session_id });
      expect(await refusal({ session_id })).toBe('409 SESSION_CLOSED');
    });
  });

  test('plans are listed, newest first, by session and state', async () => {
    const session_id = await newSession(client);
    const ids: string[] = [];
    for (const auto_approve of [false, true])
      ids.push((await createPlan(client, [step('a', 'echo', 'x')], { session_id, auto_approve })).plan_id);
    await untilPlan(client, ids[1] ?? '', 'completed');
    const list = async (more: object) =>
      ((await client.post('/plans/get', { session_id, ...more })).body as { plans: { plan_id: string }[] }).plans;
    expect((await list({})).map(({ plan_id }) => plan_id)).toEqual([ids[1], ids[0]]);
    expect((await list({ state: 'proposed' })).map(({ plan_id }) => plan_id)).toEqual([ids[0]]);
    expect((await list({ state: 'completed' }))[0]).toMatchObject({ progress: { total: 1, completed: 1 } });
  });

  test('the Temporal UI shows the steps: who works on which since when', async () => {
    const held: Dispatched[] = [];
    await join('visible', (dispatch) => void held.push(dispatch));
    const plan = await createPlan(client, [
      step('quick', 'echo', 'x'),
      step('slow', 'visible', '{{steps.quick.output}}'),
      step('last', 'echo', '{{steps.slow.output}}'),
    ]);
    const handle = shared.temporal.workflow.getHandle(`plan:${plan.tenant_id}:${plan.plan_id}`);
    const details = () => handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
    await until(async () =>
      /`slow`: running, visible-1 \(visible\) since \d/.test((await details()).currentDetails ?? ''),
    );
    const shown = (await details()).currentDetails;
    expect(shown).toMatch(/1 of 3 steps are completed/);
    expect(shown).toMatch(/`quick`: completed, echo-1 \(echo\) since \d/);
    expect(shown).toMatch(/`last`: pending, echo/);
    expect((await readPlan(client, plan.plan_id)).steps[1]).toMatchObject({
      state: 'running',
      worker: { agent_type: 'visible', instance_id: 'visible-1', since: expect.any(String) },
    });
    held[0]?.result('done');
    await untilPlan(client, plan.plan_id, 'completed');
    // The workflow shows the end a moment after the record has it.
    await until(async () => (await handle.describe()).searchAttributes.FleetState?.[0] === 'completed');
  });
});
