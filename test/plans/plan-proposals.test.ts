import { expect, test } from 'vitest';
import { type Plan, PlanResponse, type PlanSummary, PlansGetResponse } from '../../contracts/api/plans.js';
import { type Behaviour, echo, type RawAgent } from '../setup/agent.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { sharedPlatform } from '../setup/platform/shared-platform.js';
import { newSession, readPlan, step, untilPlan } from './plan-fixture.js';

const shared = await sharedPlatform();
const { client } = shared.platform;

const join = (agentType: string, behaviour?: Behaviour): Promise<RawAgent> =>
  joinAgent(shared.platform, { instanceId: `${agentType}-1`, agentType, maxConcurrentSessions: 0 }, behaviour);

const resultOf = async (agent: RawAgent, callId: string) =>
  (await agent.next((frame) => frame.type === 'tool_result' && frame.in_reply_to === callId)).payload;

const steps = [step('a', 'echo', 'one'), step('b', 'echo', '{{steps.a.output}}')];
const proposal = { description: 'what I would do', steps };

async function plansIn(session_id: string): Promise<PlanSummary[]> {
  return (await client.ok('/plans/get', { session_id }, PlansGetResponse)).plans;
}

await join('echo', echo);

test('an agent proposes a plan by a tool call, once for one key; approved by somebody else it is carried out', async () => {
  const planner = await join('planner');
  const metadata = { agent_type: 'planner' };
  const { id: taskId, contextId } = await client.send('plan it', { metadata, blocking: false });
  const dispatch = await planner.nextOfType('dispatch');
  const { dispatch_id } = dispatch.payload;
  const call = { tool: 'plan.create', arguments: proposal, dispatch_id, idempotency_key: 'k' };
  const results = [];
  for (const id of [planner.send('tool_call', call), planner.send('tool_call', call)])
    results.push(await resultOf(planner, id));
  const [first, second] = results as [{ ok: boolean; result: Plan }, { ok: boolean; result: Plan }];
  const result = { state: 'proposed', proposed_by: 'planner', session_id: contextId };
  expect(first).toMatchObject({ ok: true, result });
  expect(second.result.plan_id).toBe(first.result.plan_id);
  expect(await plansIn(contextId)).toHaveLength(1);
  planner.send('dispatch_result', { result: 'proposed' }, dispatch.id);
  await client.untilState(taskId, 'completed');

  const { plan_id } = first.result;
  await client.ok('/plans/approve', { plan_id }, PlanResponse);
  const done = await untilPlan(client, plan_id, 'completed');
  expect(await client.message(done.steps[0]?.message_id ?? '')).toMatchObject({ role: 'agent' });
});

test.each([
  ['arguments that are no plan', { description: 'x' }, 'BAD_REQUEST'],
  ['its own approval', { ...proposal, auto_approve: true }, 'BAD_REQUEST'],
])('a tool call with %s is refused', async (what, args, code) => {
  const agent = await join(what.replaceAll(' ', '-'));
  const session_id = await newSession(client, { agent_type: what.replaceAll(' ', '-') });
  const id = agent.send('tool_call', { tool: 'plan.create', arguments: args, session_id });
  expect(await resultOf(agent, id)).toMatchObject({ ok: false, error: { code } });
});

test('an agent proposes a plan in its result', async () => {
  await join('thinker', (dispatch) => dispatch.result({ plan_proposal: proposal }));
  const task = await client.send('think', { metadata: { agent_type: 'thinker' } });
  expect(task.status.state).toBe('completed');
  const plans = await plansIn(task.contextId);
  expect(plans).toEqual([expect.objectContaining({ state: 'proposed', proposed_by: 'thinker' })]);
  const plan = await readPlan(client, plans[0]?.plan_id ?? '');
  expect(plan).toMatchObject({ description: 'what I would do', progress: { total: 2 } });
});

test('a result with a plan that is not valid fails its message, with the reason', async () => {
  await join('confused', (dispatch) => dispatch.result({ plan_proposal: { steps: [] } }));
  const task = await client.send('think', { metadata: { agent_type: 'confused' } });
  expect(task.status.state).toBe('failed');
  const { error } = await client.message(task.id);
  expect(error).toMatchObject({ code: 'HANDLER_ERROR', message: expect.stringMatching(/^plan_proposal: /) });
  expect(await plansIn(task.contextId)).toEqual([]);
});
