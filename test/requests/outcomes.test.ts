import { expect, test } from 'vitest';
import { RequestGetByIdResponse } from '../../contracts/api/policies/requests.js';
import { ASKS, answerMessage, COMPLETED } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { approvalsFixture } from '../messages/approvals/approvals-fixture.js';

const api = await serveApi();
const { approvalsOf, held, calling, sent, events, outcome } = await approvalsFixture(api);

/** The outcome of the only request of a message. */
async function outcomeOf(message_id: string) {
  const [row] = await api.database.query('SELECT request_id FROM input_requests WHERE message_id = $1', [message_id]);
  return (await api.client.ok('/requests/get_by_id', row ?? {}, RequestGetByIdResponse)).request.outcome;
}
const effects = async (message_id: string) =>
  (await events(message_id, 'message.decision_effect')).map(({ payload }) => payload.outcome);

test('what was approved succeeds with its message, once', async () => {
  const id = await held();
  expect(await outcome(api.client, id, { resolution: 'approved' })).toBe('200 working');
  expect(await outcomeOf(id)).toEqual({ state: 'pending' });
  await answerMessage(api, id, COMPLETED);
  expect(await outcomeOf(id)).toEqual({ state: 'succeeded', at: expect.any(String) });
  expect(await effects(id)).toEqual(['succeeded']);
  expect(await approvalsOf({ message_id: id })).toMatchObject([{ outcome: { state: 'succeeded' } }]);
});

test('it fails with the code with which its message fails, or that it was canceled', async () => {
  const failed = await held();
  await outcome(api.client, failed, { resolution: 'approved' });
  await answerMessage(api, failed, { state: 'failed', error: { code: 'HANDLER_ERROR', message: 'broken' } });
  expect(await outcomeOf(failed)).toMatchObject({ state: 'failed', error_code: 'HANDLER_ERROR' });
  const canceled = await sent();
  await answerMessage(api, canceled, ASKS);
  await outcome(api.client, canceled, { resolution: 'confirmed' });
  await api.client.post('/messages/cancel', { message_id: canceled });
  expect(await outcomeOf(canceled)).toMatchObject({ state: 'failed', error_code: 'CANCELED' });
  expect(await effects(canceled)).toEqual(['failed']);
});

test('the approval of a tool call that nobody makes expires with its message', async () => {
  const { id } = await calling({ amount: 1 });
  await outcome(api.client, id, { resolution: 'approved' });
  await api.client.post('/messages/cancel', { message_id: id });
  expect(await outcomeOf(id)).toEqual({ state: 'expired', at: expect.any(String) });
});

test('what was rejected has none', async () => {
  const id = await held();
  expect(await outcome(api.client, id, { resolution: 'rejected' })).toBe('200 failed');
  expect(await outcomeOf(id)).toBeUndefined();
  expect(await effects(id)).toEqual([]);
});

test('it stays in the trail when the message is erased, with tool and executor; title and arguments go', async () => {
  const { id } = await calling({ amount: 1 });
  await outcome(api.client, id, { resolution: 'approved' });
  await api.client.post('/messages/cancel', { message_id: id });
  await api.database.query('UPDATE input_decisions SET title = NULL, arguments = NULL WHERE message_id = $1', [id]);
  await api.database.query('DELETE FROM input_requests WHERE message_id = $1', [id]);
  const [kept] = await approvalsOf({ message_id: id });
  expect(kept).toMatchObject({ tool: 'pay', executor: { type: 'agent' }, outcome: { state: 'expired' } });
  expect(kept).not.toHaveProperty('arguments');
});
