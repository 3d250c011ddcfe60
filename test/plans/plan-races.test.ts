import { expect, test } from 'vitest';
import { advancePlan } from '../../plans/advance.js';
import { serveApi } from '../api/served-api.js';
import { decisions } from '../messages/approvals/approvals-fixture.js';
import { createPlan, readPlan, step } from './plan-fixture.js';

const api = await serveApi();
const { client } = api;
const { approvalsOf } = decisions(api);
const other = await api.clientOf(api.tenantId, ['admin']);
const ROUNDS = 8;
/** So far ahead that every request has run out. */
const IN_TWO_DAYS = () => new Date(Date.now() + 172_800_000);

/** What is done about a plan while it is approved; and how all stands, `approval, other: state, decisions`, when one or the other has won. */
const RACES: { against: string; other: (plan_id: string) => Promise<unknown>; ends: string[] }[] = [
  {
    against: 'a cancel',
    other: (plan_id) => client.failure('/plans/cancel', { plan_id }),
    ends: ['200, 200: canceled, approved', '409 ALREADY_TERMINAL, 200: canceled, '],
  },
  {
    against: 'a rejection by somebody else',
    other: (plan_id) => other.failure('/plans/reject', { plan_id }),
    ends: ['200, 409 ALREADY_RESOLVED: running, approved', '409 ALREADY_TERMINAL, 200: rejected, rejected'],
  },
  {
    against: 'the end of its time, which refuses',
    other: async (plan_id) => {
      await advancePlan(api.db, { tenant_id: api.tenantId, plan_id }, IN_TWO_DAYS);
      return 'over';
    },
    ends: ['200, over: running, approved', '409 ALREADY_TERMINAL, over: rejected, expired'],
  },
];

test.each(RACES)('an approval of a plan against $against has one winner', async ({ other: meanwhile, ends }) => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { plan_id } = await createPlan(client, [step('a', 'echo', 'x')], { auto_approve: false });
    const both = await Promise.all([client.failure('/plans/approve', { plan_id }), meanwhile(plan_id)]);
    const made = (await approvalsOf({ plan_id })).map(({ resolution }) => resolution);
    const { state } = await readPlan(client, plan_id);
    expect(ends).toContain(`${both.join(', ')}: ${state}, ${made}`);
  }
});
