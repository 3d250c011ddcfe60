import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { FleetClient } from '../../sdk/index.js';
import { echo } from '../setup/agent.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { startPlatform } from '../setup/platform/platform.js';

test('the client of the SDK proposes, approves, awaits, lists and cancels plans', async () => {
  const { platform } = await startPlatform();
  await joinAgent(platform, { instanceId: 'echo-1', agentType: 'echo', maxConcurrentSessions: 0 }, echo);
  const { base_url: url, client_id: clientId, client_secret: clientSecret, ca_file } = platform.devJson();
  const client = new FleetClient({ url, clientId, clientSecret, ca: readFileSync(ca_file, 'utf8') });
  onTestFinished(() => client.destroy());
  const { session_id } = await client.sessions.init();
  const steps = [
    { step_id: 'a', description: 'first', agent_type: 'echo', message: 'one' },
    { description: 'second', agent_type: 'echo', message: '{{steps.a.output}}', requires_approval: true },
  ];

  const { plan_id } = await client.plans.create({ session_id, description: 'a plan', steps });
  expect((await client.plans.waitFor(plan_id)).state).toBe('proposed');
  expect((await client.plans.approve(plan_id, { comment: 'go' })).state).toBe('running');
  const waiting = await client.plans.waitFor(plan_id);
  expect(waiting.steps.map(({ step_id, state }) => [step_id, state])).toEqual([
    ['a', 'completed'],
    ['step_2', 'input-required'],
  ]);
  await client.approvals.resolve(waiting.steps[1]?.message_id ?? '', 'approved');
  const done = await client.plans.waitFor(plan_id, { until: 'terminal' });
  expect(done).toMatchObject({ state: 'completed', decisions: [{ resolution: 'approved', comment: 'go' }] });

  const second = await client.plans.create({ session_id, description: 'another', steps });
  expect((await client.plans.cancel(second.plan_id, { reason: 'no' })).error).toEqual({
    code: 'CANCELED',
    message: 'no',
  });
  const third = await client.plans.create({ session_id, description: 'a third', steps });
  expect((await client.plans.reject(third.plan_id)).state).toBe('rejected');
  const { plans } = await client.plans.get({ session_id });
  expect(plans.map(({ state }) => state)).toEqual(['rejected', 'canceled', 'completed']);
  expect((await client.plans.getById(plan_id)).steps).toHaveLength(2);
});
