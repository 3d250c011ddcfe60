import { beforeEach, expect, test } from 'vitest';
import { freshDatabase } from '../../setup/database.js';
import { RecordFixture } from '../../setup/record-fixture.js';

const database = await freshDatabase();
const fixture = new RecordFixture(database);
beforeEach(() => fixture.reset());

const WORKER = { agent_type: 'worker' };
/** A skill of an agent that is away. */
async function awaySkill(): Promise<void> {
  await fixture.agent('away', { status: 'offline', mesh_id: null, skills: ['rare'] });
}

test.each([
  ['a skill whose agents are away', async () => void (await fixture.waiting({ ...WORKER, skill_id: 'rare' }))],
  ['that skill, of any type', async () => void (await fixture.waiting({ skill_id: 'rare' }))],
  ['an agent that is away', async () => void (await fixture.waiting({ instance_id: 'away' }))],
  [
    'another agent, which is full',
    async () => {
      await fixture.agent('full');
      await fixture.send({ instance_id: 'full' });
      await fixture.waiting({ instance_id: 'full' });
    },
  ],
  [
    'the agent of its session, which is full',
    async () => {
      await fixture.agent('full');
      const first = await fixture.send({ instance_id: 'full' });
      await fixture.answer(first);
      await fixture.send({ instance_id: 'full' });
      await fixture.waiting({}, first.session_id);
    },
  ],
  [
    'the agent that asked a human, which is full',
    async () => {
      await fixture.agent('full');
      const asking = await fixture.send(WORKER);
      await fixture.answer(asking, 'input-required');
      await fixture.send({ instance_id: 'full' });
      await fixture.confirm(asking);
      expect(await fixture.kind(asking)).toBe('room');
    },
  ],
])('a message that waits for %s holds up no message that others take', async (_what, wait) => {
  await awaySkill();
  await wait();
  await fixture.agent('free', { skills: ['common'], max_concurrent_sessions: 4 });
  for (const wish of [WORKER, { skill_id: 'common' }, { ...WORKER, skill_id: 'common' }, { instance_id: 'free' }])
    expect(await fixture.send(wish)).toMatchObject({ verdict: 'dispatched', to: 'free' });
});

test.each([[WORKER], [{ skill_id: 'sums' }], [{ ...WORKER, skill_id: 'sums' }], [{ instance_id: 'a' }]])(
  'a new message goes behind one with the wish %j, which the agent that has room can take',
  async (wish) => {
    await fixture.agent('a', { skills: ['sums'] });
    const first = await fixture.send(WORKER);
    await fixture.waiting(wish);
    await fixture.answer(first);
    expect((await fixture.send(WORKER)).verdict).toBe('queued');
  },
);

test('an agent with many skills finds its own queues among those of others', async () => {
  const skillsOf = (letter: string) => Array.from({ length: 10 }, (_, place) => `${letter}${place}`);
  await fixture.agent('a', { skills: skillsOf('a') });
  await fixture.agent('b', { skills: skillsOf('b'), status: 'offline', mesh_id: null });
  await fixture.send({ instance_id: 'a' });
  const ofA = ['//a0', '//a9', '/worker/a7', 'a//'];
  const wishes = [{ skill_id: 'a0' }, { skill_id: 'a9' }, { ...WORKER, skill_id: 'a7' }, { instance_id: 'a' }];
  for (const wish of [...wishes, { skill_id: 'b0' }, { skill_id: 'b9' }, { instance_id: 'b' }])
    await fixture.waiting(wish);
  expect(await database.value("SELECT nonempty_queues_of($1, 'a', 'worker', NULL)", [fixture.tenantId])).toEqual(ofA);
});

test('room is taken by the oldest of those that can use it', async () => {
  await fixture.agent('with', { skills: ['sums'] });
  await fixture.agent('without');
  const [withSkill, withoutSkill] = [
    await fixture.send({ instance_id: 'with' }),
    await fixture.send({ instance_id: 'without' }),
  ];
  const sums = await fixture.waiting({ ...WORKER, skill_id: 'sums' });
  const anySums = await fixture.waiting({ skill_id: 'sums' });
  const any = await fixture.waiting(WORKER);
  const own = await fixture.waiting({ instance_id: 'with' });
  await fixture.answer(withoutSkill);
  expect(await fixture.takes('without')).toEqual([any.message_id]);
  await fixture.answer(withSkill);
  expect(await fixture.takes('with')).toEqual([sums.message_id]);
  for (const ref of [anySums, own]) expect(await fixture.kind(ref)).toBe('room');
});

test('an agent that joins takes what waits for a skill of its card, and one that no longer has it does not', async () => {
  await fixture.agent('a', { status: 'offline', mesh_id: null, agent_card: '{"skills": [{"id": "sums"}]}' });
  const sums = await fixture.waiting({ skill_id: 'sums' });
  const joined = (columns: string) => fixture.setAgents(`status = 'available', mesh_id = 'mesh_1' ${columns}`);
  await joined(`, agent_card = '{"skills": [{"id": "other"}, {"id": 7}, "sums"]}'`);
  expect(await fixture.takes('a')).toEqual([]);
  expect((await fixture.send(WORKER)).verdict).toBe('dispatched');
  await joined(`, skills = '[{"id": "sums"}]', max_concurrent_sessions = 2`);
  expect(await fixture.takes('a')).toEqual([sums.message_id]);
});

test('who waited for the agent of its session waits for any of the type once that agent is gone', async () => {
  await fixture.agent('a', { skills: ['sums'] });
  const first = await fixture.send({ ...WORKER, skill_id: 'sums' });
  await fixture.answer(first);
  await fixture.send({ instance_id: 'a' });
  const second = await fixture.waiting({ skill_id: 'sums' }, first.session_id);
  await fixture.setAgents("status = 'draining'");
  await fixture.agent('other');
  expect(await fixture.takes('other')).toEqual([]);
  await fixture.agent('b', { skills: ['sums'] });
  expect(await fixture.takes('b')).toEqual([second.message_id]);
});
