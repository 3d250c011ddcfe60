import { expect, test } from 'vitest';
import { ResolveManyResponse } from '../../contracts/api/policies/requests.js';
import { ASKS, answerMessage } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { approvalsFixture } from '../messages/approvals/approvals-fixture.js';
import { createPlan, step } from '../plans/plan-fixture.js';
import type { ApiClient } from '../setup/platform/api-client.js';

const api = await serveApi();
const { caller, held, sent, outcome } = await approvalsFixture(api);

const openOf = async (message_id: string) => {
  const newest = 'SELECT request_id FROM input_requests WHERE message_id = $1 ORDER BY requested_at DESC LIMIT 1';
  return (await api.database.value<string>(newest, [message_id])) ?? '';
};
/** The codes of the results; `ok` for one that was decided. */
async function resolveMany(request_ids: string[], body: object = {}, client: ApiClient = api.client) {
  const given = { request_ids, resolution: 'approved', ...body };
  const { results } = await client.ok('/requests/resolve_many', given, ResolveManyResponse);
  expect(results.map(({ request_id }) => request_id)).toEqual(request_ids);
  return results.map(({ ok, code }) => (ok ? 'ok' : code));
}
const stateOf = (message_id: string) =>
  api.database.value('SELECT state FROM messages WHERE message_id = $1', [message_id]);

test('each request is decided by itself, and one that is refused stops no other', async () => {
  const [first, decided, last] = [await held(), await held(), await held()];
  await outcome(api.client, decided, { resolution: 'rejected' });
  const ids = [await openOf(first), await openOf(decided), 'req_x', await openOf(last)];
  expect(await resolveMany(ids)).toEqual(['ok', 'ALREADY_RESOLVED', 'NOT_FOUND', 'ok']);
  expect([await stateOf(first), await stateOf(last)]).toEqual(['working', 'working']);
  expect(await resolveMany(ids)).toEqual(['ALREADY_RESOLVED', 'ALREADY_RESOLVED', 'NOT_FOUND', 'ALREADY_RESOLVED']);
});

test('a dry run says the same and decides nothing', async () => {
  const id = await held();
  const request_id = await openOf(id);
  const dry = { dry_run: true };
  expect(await resolveMany([request_id, 'req_x'], dry)).toEqual(['ok', 'NOT_FOUND']);
  expect(await resolveMany([request_id], { ...dry, resolution: 'perhaps' })).toEqual(['BAD_REQUEST']);
  expect(await resolveMany([request_id], dry, await caller('read'))).toEqual(['forbidden']);
  expect(await stateOf(id)).toBe('input-required');
  expect(await resolveMany([request_id])).toEqual(['ok']);
});

test('what an agent asked, and a plan, are decided too', async () => {
  const asked = await sent();
  await answerMessage(api, asked, ASKS);
  const plan = await createPlan(api.client, [step('look', 'worker', 'look')], { auto_approve: false });
  const ids = [await openOf(asked), plan.input_request?.request_id ?? ''];
  expect(await resolveMany(ids, { dry_run: true })).toEqual(['ok', 'ok']);
  expect(await resolveMany(ids)).toEqual(['ok', 'ok']);
  const elsewhere = await api.clientOf(await api.otherTenant(), ['full']);
  expect(await resolveMany(ids, {}, elsewhere)).toEqual(['NOT_FOUND', 'NOT_FOUND']);
});
