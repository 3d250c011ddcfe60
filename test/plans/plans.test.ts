import { beforeAll, describe, expect, test } from 'vitest';
import type { Behaviour, RawAgent } from '../setup/agent.js';
import { echo } from '../setup/agent.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { PATHS } from '../setup/platform/paths.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { createPlan, step, stepStates, untilPlan } from './plan-fixture.js';

let shared: SharedPlatform;
let client: ApiClient;

const join = (agentType: string, behaviour?: Behaviour): Promise<RawAgent> =>
  joinAgent(shared.platform, { instanceId: `${agentType}-1`, agentType, maxConcurrentSessions: 0 }, behaviour);

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
});
