import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dispatched, type RawAgent } from '../../../setup/agent.js';
import { joinAgent, openSocket } from '../../../setup/platform/fleet.js';
import { PATHS } from '../../../setup/platform/paths.js';
import { startBarePlatform } from '../../../setup/platform/platform.js';
import type { TestPlatform } from '../../../setup/platform/platform-process.js';

let platform: TestPlatform;
let agent: RawAgent;

describe.each(PATHS)('SIGTERM, $way', ({ env }) => {
  beforeAll(async () => {
    platform = await startBarePlatform(env);
    const options = { instanceId: 'worker-1', agentType: 'worker', maxConcurrentSessions: 0 };
    agent = await joinAgent(platform, options);
  });
  afterAll(() => platform?.stop());

  test('asks the agents to close, takes no new ones, lets them finish, and loses nothing', async () => {
    const task = await platform.client.send('finish this', { metadata: { agent_type: 'worker' }, blocking: false });
    const work = dispatched(agent, await agent.nextOfType('dispatch'));
    const other = { instance_id: 'other-1', agent_type: 'other', deployment_mode: 'connected' };
    expect((await platform.client.post('/agents/register', other)).status).toBe(200);
    const stopped = platform.stop();
    const { payload } = await agent.nextOfType('close_request');
    expect(payload.grace_seconds).toBeGreaterThan(0);
    await expect(openSocket(platform, 'other-1')).rejects.toThrow();
    work.result('finished');
    expect(await agent.closed).toMatchObject({ code: 1000 });
    await stopped;
    await platform.start();
    const { state, assistant_output, instance_id } = await platform.client.message(task.id);
    expect({ state, assistant_output, instance_id }).toEqual({
      state: 'completed',
      assistant_output: 'finished',
      instance_id: 'worker-1',
    });
    const { body } = await platform.client.post('/telemetry/get_events', { type: 'dispatch.sent' });
    expect(body).toMatchObject({ count: 1 });
  });
});
