import { expect, test } from 'vitest';
import { echo } from '../../setup/agent.js';
import { fleetClient } from '../../setup/fleet-client.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { joinType } from '../../system/fixture.js';

test('the client of the SDK proposes, approves, awaits, lists and cancels plans', async () => {
  const { platform } = await startPlatform();
  await joinType(platform, 'echo', echo);
  const client = fleetClient(platform);
  const { sessionId } = await client.sessions.init();
  const steps = [
    { stepId: 'a', description: 'first', agentType: 'echo', message: 'one' },
    { description: 'second', agentType: 'echo', message: '{{steps.a.output}}', requiresApproval: true },
  ];

  const { planId } = (await client.plans.create({ sessionId, description: 'a plan', steps })).plan;
  expect((await client.plans.waitFor(planId)).state).toBe('proposed');
  expect((await client.plans.approve({ planId, comment: 'go' })).plan.state).toBe('running');
  const waiting = await client.plans.waitFor(planId);
  expect(waiting.steps.map(({ stepId, state }) => [stepId, state])).toEqual([
    ['a', 'completed'],
    ['step_2', 'input-required'],
  ]);
  await client.messages.resolve(waiting.steps[1]?.messageId ?? '', { resolution: 'approved' });
  const done = await client.plans.waitFor(planId, { until: 'terminal' });
  expect(done).toMatchObject({ state: 'completed', decisions: [{ resolution: 'approved', comment: 'go' }] });

  const { plan: second } = await client.plans.create({ sessionId, description: 'another', steps });
  expect((await client.plans.cancel({ planId: second.planId, reason: 'no' })).plan.error).toEqual({
    code: 'CANCELED',
    message: 'no',
  });
  const { plan: third } = await client.plans.create({ sessionId, description: 'a third', steps });
  expect((await client.plans.reject({ planId: third.planId })).plan.state).toBe('rejected');
  const { plans } = await client.plans.get({ sessionId });
  expect(plans.map(({ state }) => state)).toEqual(['rejected', 'canceled', 'completed']);
  expect((await client.plans.getById({ planId })).plan.steps).toHaveLength(2);
});
