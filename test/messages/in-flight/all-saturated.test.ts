import { beforeEach, expect, test } from 'vitest';
import { freshDatabase } from '../../setup/database.js';
import { RecordFixture } from '../../setup/record-fixture.js';

const database = await freshDatabase();
const fixture = new RecordFixture(database);
beforeEach(() => fixture.reset());

const SATURATED = { verdict: 'agents_saturated' };
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

test.each<[(keyof typeof AGENTS)[], Record<string, unknown>, string, string]>([
  [['saturated'], {}, 'agents_saturated', 'agents_saturated'],
  [['saturated', 'saturated2', 'hosted'], {}, 'agents_saturated', 'agents_saturated'],
  [['saturated', 'offline'], {}, 'agents_saturated', 'agents_saturated'],
  [['saturated', 'free'], {}, 'dispatched', 'queued'],
  [['recovered'], {}, 'dispatched', 'queued'],
  // These are waited for.
  [['saturated', 'busy'], {}, 'queued', 'queued'],
  [['offline'], {}, 'queued', 'queued'],
  [['saturated', 'skilled'], { skill_id: 'sums' }, 'queued', 'queued'],
])('agents %j and a message %j: %s by their node, and %s by another process', async (names, wish, own, other) => {
  await register(...names);
  expect((await fixture.send({ agent_type: 'worker', ...wish })).verdict).toBe(own);
  expect((await fixture.queue({ agent_type: 'worker', ...wish })).verdict).toBe(other);
  const written = await database.value('SELECT count(*)::int FROM messages WHERE tenant_id = $1', [fixture.tenantId]);
  expect(written).toBe([own, other].filter((verdict) => verdict !== 'agents_saturated').length);
});

test('an agent that is full by its sessions is waited for, beside a saturated one', async () => {
  await register('saturated', 'full');
  expect(await fixture.send()).toMatchObject({ to: 'full' });
  expect(await fixture.send()).toMatchObject({ verdict: 'queued' });
});

test('a message that names a saturated agent, or whose session has it, is refused although another is free', async () => {
  await register('free');
  const contextId = await fixture.open();
  await fixture.setAgents("saturated_until = 'tomorrow'");
  await register('busy', 'recovered');
  for (const offers of [true, false]) {
    expect(await fixture.send({ instance_id: 'free' }, { offers })).toMatchObject(SATURATED);
    expect(await fixture.send({}, { offers, contextId })).toMatchObject(SATURATED);
  }
  expect(await fixture.send()).toMatchObject({ to: 'recovered' });
});

test('a repeat finds its message while all agents are saturated', async () => {
  await register('free');
  const { message_id } = await fixture.send({}, { messageId: 'mine' });
  await fixture.setAgents("saturated_until = 'tomorrow'");
  expect(await fixture.send({}, { messageId: 'mine' })).toMatchObject({ verdict: 'repeat', message_id });
});
