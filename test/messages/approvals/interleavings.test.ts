import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isTerminal } from '../../../contracts/api/messages.js';
import { freshDatabase } from '../../setup/database.js';
import { contradictions, leftovers } from '../../setup/histories/record-checker.js';
import { expectProperty } from '../../setup/properties.js';
import { runsOf, SEED } from '../../setup/seed.js';
import { APPROVAL_ACTIONS, ApprovalsDriver } from './approvals-driver.js';

const RUNS = runsOf(6, 40);

const database = await freshDatabase();
type Name = keyof typeof APPROVAL_ACTIONS;
const action = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<Name>('ask', 'approve', 'look', 'answer') },
  { weight: 1, arbitrary: fc.constantFrom<Name>('followUp', 'restart') },
  { weight: 3, arbitrary: fc.constantFrom(...(Object.keys(APPROVAL_ACTIONS) as Name[])) },
);
const step = fc.record({ action, target: fc.nat(2), variant: fc.nat(11) });
/** Up to four things happen at the same time. */
const moments = fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: 8, maxLength: 14, size: 'max' });

/** Runs of one thing after the other: together they have all that is expected at the end, whatever the random ones leave out. */
const SURE: [Name, number, number][][] = [
  [
    ['ask', 0, 9],
    ['edit', 0, 0],
    ['ask', 1, 1],
    ['approve', 1, 0],
    ['ask', 2, 9],
    ['restart', 2, 4],
    ['approve', 2, 0],
  ],
  [
    ['look', 0, 0],
    ['answer', 0, 0],
    ['followUp', 0, 0],
    ['ask', 1, 9],
    ['approve', 1, 2],
    ['ask', 1, 9],
    ['approve', 1, 3],
    ['ask', 1, 9],
    ['approve', 1, 4],
    ['ask', 1, 9],
    ['expire', 1, 0],
    ['ask', 2, 9],
    ['cancel', 2, 0],
  ],
  [
    ['ask', 0, 0],
    ['ask', 1, 3],
    ['ask', 2, 6],
  ],
  [
    ['look', 0, 0],
    ['answer', 0, 6],
  ],
];
const examples = SURE.map((run): [{ action: Name; target: number; variant: number }[][]] => [
  run.map(([name, target, variant]) => [{ action: name, target, variant }]),
]);

/** How often each end of a request and each stage was seen: a property of what never takes place would hold too. */
const seen: Record<string, number> = {};

test(
  'however asking, deciding, editing, canceling, expiring and restarting meet, each request has one outcome',
  async () => {
    const driver = new ApprovalsDriver(database);
    const property = fc.asyncProperty(moments, async (run) => {
      await driver.reset();
      const ended = new Map<string, string>();
      for (const moment of run) {
        const results = await Promise.allSettled(moment.map((each) => driver.run(each)));
        const defect = results.find((result) => result.status === 'rejected');
        if (defect) throw defect.reason;
        expect(await contradictions(database)).toEqual([]);
        expect(await driver.lostWakeUps()).toEqual([]);
        expect(await driver.unaccountedDecisions()).toEqual([]);
        for (const { request_id, stage, state, outcome } of await driver.requests()) {
          seen[stage] = (seen[stage] ?? 0) + 1;
          if (ended.has(request_id)) expect(outcome).toBe(ended.get(request_id));
          else if (state !== 'pending') {
            ended.set(request_id, outcome);
            seen[state] = (seen[state] ?? 0) + 1;
          }
        }
      }
      expect(await driver.stuckAfterDeath()).toEqual([]);
      expect(await contradictions(database)).toEqual([]);
      for (const { message_id, state } of await driver.messages())
        if (!isTerminal(state)) await driver.cancel(message_id);
      expect(await leftovers(database)).toEqual([]);
    });
    await expectProperty(property, { runs: RUNS, seed: SEED, examples });
    for (const state of ['resolved', 'expired', 'withdrawn']) expect(seen[state], state).toBeGreaterThan(0);
    expect(driver.partial, 'approvals below a quorum').toBeGreaterThan(0);
    expect(driver.edits, 'edited arguments').toBeGreaterThan(0);
    expect(driver.killed, 'deaths amid something').toBeGreaterThan(0);
    for (const way of ['credential', 'callback', 'page', 'slack', 'follow-up'])
      expect(driver.ways[way], way).toBeGreaterThan(0);
    for (const stage of ['admission', 'tool', 'plan', 'dispatch', 'agent', 'output'])
      expect(seen[stage], stage).toBeGreaterThan(0);
  },
  8_000 * RUNS,
);
