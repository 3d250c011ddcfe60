import { expect, test } from 'vitest';
import { type Dispatched, echo, silent } from '../setup/agent.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { sharedPlatform } from '../setup/platform/shared-platform.js';
import { until } from '../setup/until.js';
import { createPlan, readPlan, step, stepStates, untilPlan, untilStep } from './plan-fixture.js';

const shared = await sharedPlatform();
const { client } = shared.platform;
const join = (agentType: string, behaviour = echo) =>
  joinAgent(shared.platform, { instanceId: `${agentType}-1`, agentType, maxConcurrentSessions: 0 }, behaviour);
await join('echo');

/** The workflow of a plan, and what the Temporal UI shows of it. */
function workflowOf({ tenant_id, plan_id }: { tenant_id: string; plan_id: string }) {
  const handle = shared.temporal.workflow.getHandle(`plan:${tenant_id}:${plan_id}`);
  const details = async () => {
    const metadata = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
    return metadata.currentDetails ?? '';
  };
  const isShown = (state: string) =>
    until(async () => (await handle.describe()).searchAttributes.FleetState?.[0] === state, { what: state });
  return { handle, details, isShown };
}

test('a plan is carried out by agents; the Temporal UI shows its steps, who works on which since when', async () => {
  const held: Dispatched[] = [];
  await join('visible', (dispatch) => void held.push(dispatch));
  const plan = await createPlan(client, [
    step('quick', 'echo', 'x'),
    step('slow', 'visible', '{{steps.quick.output}}'),
    step('last', 'echo', '{{steps.slow.output}}'),
  ]);
  const { details, isShown } = workflowOf(plan);
  await until(async () => /`slow`: running, visible-1 \(visible\) since \d/.test(await details()));
  for (const shown of [
    /1 of 3 steps are completed/,
    /`quick`: completed, echo-1 \(echo\) since \d/,
    /`last`: pending, echo/,
  ])
    expect(await details()).toMatch(shown);
  const worker = { agent_type: 'visible', instance_id: 'visible-1', since: expect.any(String) };
  expect((await readPlan(client, plan.plan_id)).steps[1]).toMatchObject({ state: 'running', worker });
  expect(held[0]?.text).toBe('echo: x');
  held[0]?.result('done');
  const done = await untilPlan(client, plan.plan_id, 'completed');
  expect((await client.message(done.steps[2]?.message_id ?? '')).assistant_output).toBe('echo: done');
  await isShown('completed'); // a moment after the record has it
});

test('the Temporal UI says what a proposed plan waits for: from whom, since when, until when, and how to decide', async () => {
  const plan = await createPlan(client, [step('a', 'echo', 'one')], { auto_approve: false });
  const { plan_id, input_request } = plan;
  const { details, isShown } = workflowOf(plan);
  await until(details);
  for (const said of [
    'Waits for a human: approval, asked by the plan.',
    'Who may decide: a token with the scope admin, or a callback token',
    `Since ${input_request?.requested_at}, until ${input_request?.expires_at}`,
    `POST /messages/${plan_id}/resolve`,
    '`a`: pending, echo',
  ])
    expect(await details()).toContain(said);
  await isShown('input-required');
});

test('the time of a step, and the pause before its next attempt, pass by themselves', async () => {
  await join('waiting', silent);
  let attempts = 0;
  await join('unsteady', (dispatch) => {
    attempts += 1;
    if (attempts === 1) dispatch.error('HANDLER_ERROR', 'not yet');
    else dispatch.result('at last');
  });
  const plan = await createPlan(client, [
    step('late', 'waiting', 'wait', { timeout_seconds: 1 }),
    step('again', 'unsteady', 'try', { max_attempts: 2 }),
  ]);
  const failed = await untilPlan(client, plan.plan_id, 'failed');
  expect(stepStates(failed)).toEqual({ late: 'failed', again: 'completed' });
  expect(failed.error).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
});

test.each<[string, (workflow: ReturnType<typeof workflowOf>) => Promise<unknown>]>([
  ['an operator in the Temporal UI', ({ handle }) => handle.cancel()],
  ['the end of its workflow, which an operator terminated', ({ handle }) => handle.terminate('test')],
])('a plan is canceled by %s, and the agent hears of it', async (how, cancel) => {
  const agentType = how.replaceAll(/[ ,]+/g, '-');
  const agent = await join(agentType, silent);
  const plan = await createPlan(client, [step('a', agentType, 'go'), step('b', 'echo', '{{steps.a.output}}')]);
  const { plan_id } = plan;
  const dispatch = await agent.nextOfType('dispatch');
  await untilStep(client, plan_id, 'a', 'running');
  // A wake-up that is on its way would start a workflow that was ended anew.
  await until(
    async () => (await shared.everyTenant.query('SELECT 1 FROM plan_wakes WHERE plan_id = $1', [plan_id])).length === 0,
  );
  await cancel(workflowOf(plan));
  const canceled = await until(async () => {
    await shared.everyTenant.query('UPDATE plans SET check_at = now() WHERE plan_id = $1 AND check_at IS NOT NULL', [
      plan_id,
    ]);
    const found = await readPlan(client, plan_id);
    return found.state !== 'running' && found;
  });
  expect([canceled.state, stepStates(canceled)]).toEqual(['canceled', { a: 'failed', b: 'skipped' }]);
  const error = await agent.next((frame) => frame.type === 'error' && frame.in_reply_to === dispatch.id);
  expect(error.payload).toMatchObject({ code: 'CANCELED' });
});
