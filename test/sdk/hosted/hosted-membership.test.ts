import { expect, test } from 'vitest';
import { until } from '../../setup/until.js';
import { agentOn } from '../agents.js';

/** A hosted agent on a fake platform, registered there. */
async function member() {
  const { mesh: platform, agent } = await agentOn();
  await agent.serve();
  const count = (path: string) => platform.count(path);
  const refuse = (status: number, code: string) =>
    platform.refusals.set('/agents/heartbeat', { status, body: { error: 'no', code } });
  return { platform, agent, closed: agent.closed, count, refuse };
}

test('a hosted agent is not registered anew for a heartbeat that failed: it may have been deregistered meanwhile', async () => {
  const { agent, closed, count, refuse } = await member();
  const before = count('/agents/heartbeat');
  refuse(503, 'SERVICE_UNAVAILABLE');
  agent.reportStatus('busy');
  await until(() => count('/agents/heartbeat') === before + 2, { what: 'a second try' });
  refuse(404, 'DEREGISTERED');
  await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'DEREGISTERED' });
  expect(count('/agents/register')).toBe(1);
});

test('a platform that has forgotten a hosted agent is told of it again, also where that fails at first', async () => {
  const { platform, agent, count, refuse } = await member();
  refuse(404, 'NOT_FOUND');
  platform.refusals.set('/agents/register', { status: 503, body: { error: 'no', code: 'SERVICE_UNAVAILABLE' } });
  agent.reportStatus('busy');
  await until(() => count('/agents/register') === 2, { what: 'a registration' });
  platform.refusals.delete('/agents/register');
  await until(() => count('/agents/register') > 2, { what: 'another registration' });
  platform.refusals.clear();
  agent.reportStatus('available');
  await until(() => platform.requests.at(-1)?.body.status === 'available', { what: 'a heartbeat' });
  expect(platform.requests.at(-1)?.path).toBe('/agents/heartbeat');
});
