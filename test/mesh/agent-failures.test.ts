import { describe, expect, it } from 'vitest';
import { until } from '../setup/until.js';
import type { FixtureAgent } from './fixture-agent.js';
import type { MeshNodeUnderTest } from './mesh-fixture.js';
import { atWork, fixture, joined, useMesh } from './use-mesh.js';

useMesh('a');

const health = async () => {
  const { status, consecutive_failures } = await fixture.agent('a');
  return [status, consecutive_failures];
};
const statuses = async () => (await fixture.events('agent.health_changed')).map(({ status }) => status);

/** Lets a dispatch's deadline pass while the agent stays connected. */
async function deadline(node: MeshNodeUnderTest, agent: FixtureAgent): Promise<void> {
  const { ref, end } = await node.send(agent, 'hello', { deadline_ms: 50 });
  expect(await end).toMatchObject({ kind: 'closed', final: 'failed', error: { code: 'DEADLINE_EXCEEDED' } });
  expect((await fixture.message(ref)).error?.code).toBe('DEADLINE_EXCEEDED');
}

describe('failures of a connected agent', () => {
  it('three deadlines in a row make it unhealthy, heartbeats between them do not help', async () => {
    const { node, agent } = await joined();
    await deadline(node, agent);
    agent.send('heartbeat', { status: 'available', max_concurrent_sessions: 4 });
    await until(async () => (await fixture.agent('a')).max_concurrent_sessions === 4);
    await deadline(node, agent);
    expect(await health()).toEqual(['available', 2]);
    await deadline(node, agent);
    expect(await health()).toEqual(['unhealthy', 3]);
    expect(await statuses()).toEqual(['available', 'unhealthy']);
    await expect(fixture.open()).rejects.toThrow('"waits_for":"room"');
  });

  it('it is routed to again once it calls itself available, or connects anew', async () => {
    const { node, agent } = await joined();
    for (let n = 0; n < 3; n += 1) await deadline(node, agent);
    agent.send('heartbeat', { status: 'available' });
    await until(async () => (await health())[0] === 'available');
    expect(await health()).toEqual(['available', 0]);
    for (let n = 0; n < 3; n += 1) await deadline(node, agent);
    expect((await health())[0]).toBe('unhealthy');
    await node.join('a');
    expect(await health()).toEqual(['available', 0]);
  });

  it('an answer ends the row, also one that reports an error', async () => {
    const { node, agent } = await joined();
    for (const answer of ['result', 'error'] as const) {
      await deadline(node, agent);
      await deadline(node, agent);
      const { dispatch, end } = await node.send(agent);
      dispatch[answer]('HANDLER_ERROR');
      await end;
      await until(async () => (await health())[1] === 0, { what: `no failures after an ${answer}` });
    }
    expect(await statuses()).toEqual(['available']);
  });

  it('an agent that is lost with its work has failed; one that came back starts over', async () => {
    const { node, agent, end } = await atWork({}, { environment: { RESUME_WINDOW_MS: '50' } });
    agent.kill();
    expect(await end).toMatchObject({ final: 'failed', error: { code: 'AGENT_DISCONNECTED' } });
    expect((await health())[1]).toBe(1);
    const { agent: second } = await node.join('a');
    expect(await health()).toEqual(['available', 0]);
    const lost = await node.send(second);
    await node.join('a');
    await lost.end;
    expect(await health()).toEqual(['available', 0]);
  });
});
