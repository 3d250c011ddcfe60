import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { freshDatabase } from '../../setup/database.js';
import { expectProperty } from '../../setup/properties.js';
import { runsOf, SEED } from '../../setup/seed.js';
import { until } from '../../setup/until.js';
import { ACTIONS, CapacityDriver, type CapacityStep } from './capacity-driver.js';

const RUNS = runsOf(1, 4);

const database = await freshDatabase();
const driver = new CapacityDriver(database);
afterAll(() => driver.close());

type Name = CapacityStep['action'];
const action = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Name>('send') },
  { weight: 2, arbitrary: fc.constantFrom<Name>('complete', 'route') },
  { weight: 2, arbitrary: fc.constantFrom(...(Object.keys(ACTIONS) as Name[])) },
);
const step: fc.Arbitrary<CapacityStep> = fc.record({ action, target: fc.nat(40), process: fc.nat(2) });
/** The steps of a moment happen at the same time. */
const moments = fc.array(fc.array(step, { minLength: 1, maxLength: 16 }), { minLength: 3, maxLength: 5, size: 'max' });

/** So many steps of one kind at once, in all processes. Every third target of `send` names the type only. */
const many = (name: Name, count: number): CapacityStep[] =>
  Array.from({ length: count }, (_, n) => ({ action: name, target: name === 'send' ? 0 : n, process: n }));
/** Does everything that is counted, whatever chance does. */
const SURE: CapacityStep[][] = [
  ...Array.from({ length: 4 }, () => many('send', 1)),
  many('complete', 1),
  many('ask', 1),
  many('cancel', 1),
  many('disconnect', 12),
  many('connect', 12),
  many('send', 36),
  many('complete', 4),
  many('route', 6),
];

async function expectWithinBounds(): Promise<void> {
  for (const { instance_id, room, sessions, load } of await driver.agents()) {
    expect(load, `the load of ${instance_id}`).toBe(sessions);
    expect(sessions, `the sessions of ${instance_id}`).toBeLessThanOrEqual(room);
  }
}

/** Ends what is not over: nothing is counted then. */
async function finish(): Promise<void> {
  for (const { message_id } of await driver.unfinished()) await driver.cancel(driver.process(0), message_id);
  expect((await driver.agents()).filter(({ load, sessions }) => load + sessions > 0)).toEqual([]);
}

/** All the room that the agents say they have can be used, and no more. */
async function expectAllRoomUsable(): Promise<void> {
  const agents = await driver.agents();
  await Promise.all(agents.map(({ instance_id }, n) => driver.connect(driver.process(n), instance_id, n)));
  const room = agents.reduce((sum, one) => sum + one.room, 0);
  await Promise.all(many('send', room).map((each) => driver.run(each)));
  const isAllSent = async (): Promise<boolean> => {
    const waiting = await driver.waiting();
    await Promise.all(waiting.map(({ message_id }, n) => driver.route(driver.process(n), message_id)));
    return (await driver.waiting()).length === 0;
  };
  await until(isAllSent, { what: 'all messages sent' });
  expect((await driver.agents()).map(({ sessions }) => sessions)).toEqual(agents.map((one) => one.room));
  await driver.run({ action: 'send', target: 0, process: 0 });
  const [last] = await driver.waiting();
  expect(await driver.route(driver.process(0), last?.message_id ?? '')).toBe(false);
  driver.counts.full += 1;
  await expectWithinBounds();
}

test(
  'whatever happens at the same time, no agent has more sessions than it may, and none is lost count of',
  async () => {
    const property = fc.asyncProperty(moments, async (run) => {
      await driver.reset();
      for (const moment of run) {
        const results = await Promise.allSettled(moment.map((each) => driver.run(each)));
        const defect = results.find((result) => result.status === 'rejected');
        if (defect) throw defect.reason;
        await expectWithinBounds();
      }
      await finish();
      await expectAllRoomUsable();
      await finish();
    });
    await expectProperty(property, { runs: RUNS, seed: SEED, examples: [[SURE]] });
    for (const [what, count] of Object.entries(driver.counts)) expect(count, what).toBeGreaterThan(0);
  },
  30_000 * RUNS,
);
