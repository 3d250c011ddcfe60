import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ResolveResponse } from '../../../contracts/api/messages.js';
import { PlanResponse } from '../../../contracts/api/plans.js';
import { createPlan, readPlan, step, untilPlan, untilStep } from '../../plans/plan-fixture.js';
import { JournalingAgent } from '../../setup/platform/fleet.js';
import { startBarePlatform } from '../../setup/platform/platform.js';
import { until } from '../../setup/until.js';

const STEPS = 100;
/** How many steps each step waits for at most. */
const FAN_IN = 3;

/** A hundred steps, each after up to three before it; what was lost with a process is tried again. */
function manySteps() {
  return Array.from({ length: STEPS }, (_, place) => {
    const before = Array.from({ length: Math.min(FAN_IN, place) }, (_unused, index) =>
      Math.floor((place * index) / FAN_IN),
    );
    const depends_on = [...new Set(before)].map((other) => `s${other}`);
    return step(`s${place}`, 'worker', `do s${place}`, { depends_on, max_attempts: 3 });
  });
}

test('a plan of 100 steps survives kill -9 of everything in the middle: no attempt is made twice, and all steps complete', async () => {
  const platform = await startBarePlatform();
  const { client } = platform;
  const options = { instanceId: 'worker-1', agentType: 'worker', maxConcurrentSessions: 0 };
  const agent = await new JournalingAgent(platform, options, async (dispatch) => {
    await pause(20);
    dispatch.result(`done: ${dispatch.text}`);
  }).start();
  const plan = await createPlan(client, manySteps(), { max_parallel: 8 });
  const proposed = await createPlan(client, [step('a', 'worker', 'proposed')], { auto_approve: false });
  const asking = await createPlan(client, [step('a', 'worker', 'asked', { requires_approval: true })]);
  await untilStep(client, asking.plan_id, 'a', 'input-required');
  await until(async () => (await readPlan(client, plan.plan_id)).progress.completed >= 20, { what: 'twenty steps' });

  await platform.kill9();
  const before = agent.journal.length;
  expect(before).toBeLessThan(STEPS);
  await platform.start();

  const waiting = await untilStep(client, asking.plan_id, 'a', 'input-required');
  const path = `/messages/${waiting.steps[0]?.message_id}/resolve`;
  await client.ok(path, { resolution: 'approved' }, ResolveResponse);
  await client.ok('/plans/approve', { plan_id: proposed.plan_id }, PlanResponse);
  for (const { plan_id } of [asking, proposed]) await untilPlan(client, plan_id, 'completed', 120_000);

  const done = await untilPlan(client, plan.plan_id, 'completed', 240_000);
  await agent.stop();
  expect(agent.journal.length).toBeGreaterThan(before);
  const messages = agent.journal.map(({ message_id }) => message_id);
  expect(new Set(messages).size).toBe(messages.length);
  for (const { step_id, attempts, message_id } of done.steps) {
    const made = agent.journal.filter(({ text }) => text === `do ${step_id}`);
    expect(made.length, step_id).toBeLessThanOrEqual(attempts);
    expect(made.at(-1)?.message_id).toBe(message_id);
  }
}, 400_000);
