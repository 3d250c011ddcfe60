import { beforeEach, expect, test } from 'vitest';
import { freshDatabase } from '../../setup/database.js';
import { RecordFixture } from '../../setup/record-fixture.js';

const database = await freshDatabase();
const fixture = new RecordFixture(database);
beforeEach(() => fixture.reset());

/** The agents of the tests, by name: columns that differ from a free connected one. */
const AGENTS = {
  free: {},
  saturated: { saturated_until: 'tomorrow' },
  saturated2: { saturated_until: 'tomorrow' },
  recovered: { saturated_until: 'yesterday' },
  busy: { status: 'busy' },
  full: { max_concurrent_sessions: 1 },
  offline: { status: 'offline', mesh_id: null },
  skilled: { status: 'offline', mesh_id: null, skills: ['sums'] },
  hosted: { public_url: 'http://192.0.2.1/', mesh_id: null, saturated_until: 'tomorrow' },
} as const;

async function register(...names: (keyof typeof AGENTS)[]): Promise<void> {
  for (const name of names) {
    const { skills = [], ...columns } = AGENTS[name] as { skills?: readonly string[] };
    await fixture.agent(name, { max_concurrent_sessions: 0, ...columns, skills: [...skills] });
  }
}

test.each<[(keyof typeof AGENTS)[], Record<string, unknown>, string]>([
  [['saturated'], {}, 'queued'],
  [['saturated', 'saturated2', 'hosted'], {}, 'queued'],
  [['saturated', 'offline'], {}, 'queued'],
  [['saturated', 'free'], {}, 'dispatched'],
  [['recovered'], {}, 'dispatched'],
  [['saturated', 'busy'], {}, 'queued'],
  [['offline'], {}, 'queued'],
  [['saturated', 'skilled'], { skill_id: 'sums' }, 'queued'],
])('agents %j and a message %j: %s by their node, and queued by another process', async (names, wish, own) => {
  await register(...names);
  expect((await fixture.send({ agent_type: 'worker', ...wish })).verdict).toBe(own);
  expect((await fixture.queue({ agent_type: 'worker', ...wish })).verdict).toBe('queued');
  const written = await database.value('SELECT count(*)::int FROM messages WHERE tenant_id = $1', [fixture.tenantId]);
  expect(written).toBe(2);
});

test('an agent that is full by its sessions is waited for, beside a saturated one', async () => {
  await register('saturated', 'full');
  expect(await fixture.send()).toMatchObject({ to: 'full' });
  expect(await fixture.send()).toMatchObject({ verdict: 'queued' });
});

test('a message that names a saturated agent, or whose session has it, waits for it although another is free', async () => {
  await register('free');
  const contextId = await fixture.open();
  await fixture.setAgents("saturated_until = 'tomorrow'");
  await register('busy', 'recovered');
  const named = await fixture.send({ instance_id: 'free' });
  const bound = await fixture.send({}, { contextId });
  expect([named, bound]).toMatchObject([{ verdict: 'queued' }, { verdict: 'queued' }]);
  expect(await fixture.send()).toMatchObject({ to: 'recovered' });
  expect(await fixture.takes('free', 3)).toEqual([named.message_id, bound.message_id]);
});

test('a repeat finds its message while all agents are saturated', async () => {
  await register('free');
  const { message_id } = await fixture.send({}, { messageId: 'mine' });
  await fixture.setAgents("saturated_until = 'tomorrow'");
  expect(await fixture.send({}, { messageId: 'mine' })).toMatchObject({ verdict: 'repeat', message_id });
});
