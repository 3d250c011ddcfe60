import { describe, expect, inject, test } from 'vitest';
import { HealthResponse } from '../../../../contracts/api/health.js';
import { echo } from '../../../setup/agent.js';
import { freshDatabase } from '../../../setup/database.js';
import { joinAgent, registerAgent } from '../../../setup/platform/fleet.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import type { TestPlatform } from '../../../setup/platform/platform-process.js';
import { refusingTemporal } from '../../../setup/platform/refusing-temporal.js';
import { TcpProxy } from '../../../setup/platform/tcp-proxy.js';
import { until } from '../../../setup/until.js';

const UNAVAILABLE = 14;
const PERMISSION_DENIED = 7;
const DESCRIBE = 'DescribeNamespace';
const LATE = { instanceId: 'late-1', agentType: 'late' };

/** A way to Temporal on which it cannot be used until `mend` is called. */
interface BadWay {
  address: string;
  mend(): void;
}

/** @param refuses whether a call of the method is refused with this status, the nth of its method */
async function refusing(status: number, refuses: (method: string, nth: number) => boolean): Promise<BadWay> {
  let isMended = false;
  const seen = new Map<string, number>();
  const address = await refusingTemporal(inject('temporalAddress'), (method) => {
    const nth = (seen.get(method) ?? 0) + 1;
    seen.set(method, nth);
    return !isMended && refuses(method, nth) ? status : null;
  });
  const mend = () => {
    isMended = true;
  };
  return { address, mend };
}

/** A port that cuts connections, or takes them and says nothing. */
async function closed(how: 'isShut' | 'isSilent'): Promise<BadWay> {
  const proxy = await TcpProxy.to(`tcp://${inject('temporalAddress')}`);
  proxy[how] = true;
  const mend = () => {
    proxy[how] = false;
  };
  return { address: `127.0.0.1:${proxy.port}`, mend };
}

const start = ({ address }: BadWay, env: Record<string, string> = {}) =>
  startPlatform({ TEMPORAL_ADDRESS: address, FLEET_LOG_LEVEL: 'info', ...env });

/** The lines of the log with this message. */
const logLines = (platform: TestPlatform, message: string) =>
  platform
    .log()
    .split('\n')
    .filter((line) => line.includes(`"msg":"${message}"`))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

const BEGINS = 'Temporal cannot be used yet; trying again';
const WORKS = 'Temporal can be used; the start is complete';

async function health({ client }: TestPlatform): Promise<HealthResponse> {
  return HealthResponse.parse((await client.get('/health')).body);
}

describe.each([
  { what: 'takes no connections', open: () => closed('isShut') },
  { what: 'says nothing', open: () => closed('isSilent') },
  { what: 'answers every call with UNAVAILABLE', open: () => refusing(UNAVAILABLE, () => true) },
  {
    what: 'no longer describes the namespace when the workers ask',
    open: () => refusing(UNAVAILABLE, (method, nth) => method === DESCRIBE && nth > 1),
  },
])('a start while Temporal $what', ({ open }) => {
  test('answers quick messages and says so, and completes by itself once Temporal can be used', async () => {
    const way = await open();
    const { platform } = await start(way);
    expect(await health(platform)).toMatchObject({ status: 'degraded', checks: { temporal: 'down', mesh: 'ok' } });
    expect((await platform.client.get('/health?ready=full')).status).toBe(503);
    await joinAgent(platform, { instanceId: 'echo-1', agentType: 'echo' }, echo);
    const quick = await platform.client.send('quick', { metadata: { agent_type: 'echo' } });
    expect(quick.status.state).toBe('completed');
    await registerAgent(platform.client, LATE);
    const waiting = await platform.client.send('waits', { metadata: { agent_type: 'late' }, blocking: false });
    expect(waiting.status.state).toBe('submitted');
    const [begin, ...others] = logLines(platform, BEGINS);
    expect(others).toEqual([]);
    expect(begin).toMatchObject({ address: way.address, remedy: expect.stringContaining('TEMPORAL_ADDRESS') });
    expect(begin?.err).toBeTruthy();
    expect(logLines(platform, WORKS)).toEqual([]);

    await joinAgent(platform, LATE, echo);
    way.mend();
    await until(async () => (await platform.client.get('/health?ready=full')).status === 200, { what: 'health' });
    await platform.client.untilState(waiting.id, 'completed', 60_000);
    expect([logLines(platform, BEGINS), logLines(platform, WORKS)]).toMatchObject([[begin], [{ level: 'info' }]]);
  });

  test('ends cleanly on SIGTERM', async () => {
    const { platform } = await start(await open());
    await platform.stop();
    expect(platform.ended).toBe('exit code 0');
    expect(logLines(platform, 'a component failed to stop')).toEqual([]);
  });
});

test.each(['INSERT INTO credentials', 'INSERT INTO sign_in_links'])(
  'a database that is cut at %s delays the start and does not end it',
  async (statement) => {
    let cuts = 0;
    const reader = () => (chunk: Buffer) => {
      if (cuts > 0 || !chunk.includes(statement)) return;
      cuts += 1;
      proxy.cut();
    };
    const database = await freshDatabase();
    const proxy = await TcpProxy.to(database.url, { reader });
    const env = { FLEET_LOG_LEVEL: 'info', DATABASE_URL: proxy.urlOf(database.url) };
    const { platform } = await startPlatform(env, { database });
    expect(cuts).toBe(1);
    expect(logLines(platform, 'the database does not answer yet, trying again')).toHaveLength(1);
    expect(await health(platform)).toMatchObject({ checks: { database: 'ok' } });
  },
);

describe('a mistake that no repetition mends ends the start, with its remedy', () => {
  const free = (address: string): BadWay => ({ address, mend: () => undefined });

  test.each<{ mistake: string; open: () => Promise<BadWay>; env?: Record<string, string>; says: RegExp }>([
    {
      mistake: 'a namespace that does not exist',
      open: async () => free(inject('temporalAddress')),
      env: { TEMPORAL_NAMESPACE: 'no-such-namespace' },
      says: /did not start: Temporal at .* has no namespace no-such-namespace: create it .* or set TEMPORAL_NAMESPACE/,
    },
    {
      mistake: 'an account that may not use the namespace',
      open: () => refusing(PERMISSION_DENIED, (method) => method === DESCRIBE),
      says: /did not start: Temporal at .* does not permit the use of the namespace .* check TEMPORAL_API_KEY/,
    },
    {
      mistake: 'an account that the workers find refused',
      open: () => refusing(PERMISSION_DENIED, (method, nth) => method === DESCRIBE && nth > 1),
      says: /did not start: Temporal at .* does not permit the use of the namespace .* check TEMPORAL_API_KEY/,
    },
    {
      mistake: 'an address that cannot be one',
      open: async () => free('two words'),
      says: /did not start: TEMPORAL_ADDRESS is not the address of a Temporal server: two words/,
    },
  ])('$mistake', async ({ open, env, says }) => {
    await expect(open().then((way) => start(way, env))).rejects.toThrow(says);
  });

  test.each(['FLEET_API_PORT', 'FLEET_MESH_PORT'])('a port of another program: %s', async (setting) => {
    const taken = await TcpProxy.to(`tcp://${inject('temporalAddress')}`);
    await expect(start(free(inject('temporalAddress')), { [setting]: String(taken.port) })).rejects.toThrow(
      new RegExp(`did not start: .*EADDRINUSE.*:${taken.port}: set ${setting} to another port`),
    );
  });
});
