import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isTerminal } from '../../contracts/api/messages.js';
import { nextStep } from '../../messages/supervise/next-step.js';
import { freshDatabase } from '../setup/database.js';
import { contradictions, leftovers } from '../setup/histories/record-checker.js';
import { expectProperty } from '../setup/properties.js';
import { runsOf, SEED } from '../setup/seed.js';
import { ACTIONS, PropertyDriver, type PropertyStep, TENANT } from './property-driver.js';

const RUNS = runsOf(12, 100);

const database = await freshDatabase();
/** Comparisons in all runs: one that never takes place would hold too. */
const compared = { ends: 0, steps: 0, dispatches: 0 };

type Name = PropertyStep['action'];
const action = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom<Name>('send', 'deliver') },
  { weight: 4, arbitrary: fc.constantFrom<Name>('ask', 'complete', 'resolve') },
  { weight: 5, arbitrary: fc.constantFrom(...(Object.keys(ACTIONS) as Name[])) },
);
const step = fc.record({ action, target: fc.nat(3), variant: fc.nat(7) });
/** Up to three steps happen at the same time. */
const moments = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 6, maxLength: 10, size: 'max' });

/** What had ended before has not changed since. */
async function expectEndsKept(driver: PropertyDriver, ended: Map<string, string>): Promise<void> {
  for (const message of await driver.messages()) {
    const before = ended.get(message.message_id);
    if (before !== undefined) expect(message.ended).toBe(before);
    compared.ends += before === undefined ? 0 : 1;
    if (isTerminal(message.state)) ended.set(message.message_id, message.ended);
  }
}

/** Asked twice in a row, `nextStep` gives the same step. */
async function expectStepRepeats(driver: PropertyDriver): Promise<void> {
  for (const { message_id } of await driver.messages()) {
    const ref = { tenant_id: TENANT, message_id };
    const first = await nextStep(driver.core, ref);
    const second = await nextStep(driver.core, ref);
    expect(second?.kind).toBe(first?.kind);
    compared.steps += 1;
    if (first?.kind !== 'dispatch') continue;
    expect(second).toMatchObject({ dispatch_id: first.dispatch_id });
    compared.dispatches += 1;
  }
}

test(
  'whatever happens in whatever order, each message ends once and nothing is held',
  async () => {
    const driver = new PropertyDriver(database);
    const property = fc.asyncProperty(moments, async (run) => {
      await driver.reset();
      const ended = new Map<string, string>();
      for (const moment of run) {
        const results = await Promise.allSettled(moment.map((each) => driver.run(each)));
        const defect = results.find((result) => result.status === 'rejected');
        if (defect) throw defect.reason;
        expect(await contradictions(database)).toEqual([]);
        await expectEndsKept(driver, ended);
      }
      await expectStepRepeats(driver);
      await driver.finishAll();
      expect(await leftovers(database)).toEqual([]);
      await expectEndsKept(driver, ended);
      expect([...driver.once].filter(([, times]) => times > 1)).toEqual([]);
    });
    await expectProperty(property, { runs: RUNS, seed: SEED });
    for (const [what, count] of Object.entries(compared)) expect(count, what).toBeGreaterThan(0);
  },
  3_000 * RUNS,
);
