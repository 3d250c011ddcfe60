import { expect, test } from 'vitest';
import { GetApprovalsResponse } from '../../contracts/api/policies/approvals.js';
import { advancePlan } from '../../plans/advance.js';
import { serveApi } from '../api/served-api.js';
import { createPlan, readPlan, step } from './plan-fixture.js';

const api = await serveApi();
const { client } = api;
const ROUNDS = 10;
/** So far ahead that every request has run out. */
const IN_TWO_DAYS = () => new Date(Date.now() + 172_800_000);

/** Approves a proposed plan while something else is done about it. */
async function raced(other: (plan_id: string) => Promise<unknown>) {
  const { plan_id } = await createPlan(client, [step('a', 'echo', 'x')], { auto_approve: false });
  const [approved, done] = await Promise.all([client.failure('/plans/approve', { plan_id }), other(plan_id)]);
  const { approvals } = await client.ok('/messages/get_approvals', { plan_id }, GetApprovalsResponse);
  const { state } = await readPlan(client, plan_id);
  return { approved, done, state, decisions: approvals.map(({ resolution }) => resolution) };
}

test('an approval of a plan against a cancel has one winner', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { approved, done, state, decisions } = await raced((plan_id) => client.failure('/plans/cancel', { plan_id }));
    expect([done, state]).toEqual(['200', 'canceled']);
    if (approved === '200') expect(decisions).toEqual(['approved']);
    else expect([approved, decisions]).toEqual(['409 ALREADY_TERMINAL', []]);
  }
});

test('against a rejection by somebody else too', async () => {
  const other = await api.clientOf(api.tenantId, ['admin']);
  for (let round = 0; round < ROUNDS; round += 1) {
    const { approved, done, state, decisions } = await raced((plan_id) => other.failure('/plans/reject', { plan_id }));
    if (approved === '200') expect([done, state, decisions]).toEqual(['409 ALREADY_RESOLVED', 'running', ['approved']]);
    else expect([approved, done, state, decisions]).toEqual(['409 ALREADY_TERMINAL', '200', 'rejected', ['rejected']]);
  }
});

test('and against the end of its time, which refuses', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { approved, state, decisions } = await raced((plan_id) =>
      advancePlan(api.db, { tenant_id: api.tenantId, plan_id }, IN_TWO_DAYS),
    );
    if (approved === '200') expect([state, decisions]).toEqual(['running', ['approved']]);
    else expect([approved, state, decisions]).toEqual(['409 ALREADY_TERMINAL', 'rejected', ['expired']]);
  }
});
