import { expect, test } from 'vitest';
import { ASKS, answerMessage } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from './approvals-fixture.js';

const api = await serveApi();
const { calling, outcome, sent } = await approvalsFixture(api);

/** The events of a message by the rows that hold them, as they were written. Each transaction wrote one row. */
async function groupsOf(messageId: string): Promise<string[]> {
  const rows = await api.database.query<{ types: string; transaction_id: string }>(
    `SELECT string_agg(event_type, ' ' ORDER BY event_id) AS types, transaction_id::text FROM events
      WHERE group_id IN (SELECT group_id FROM events WHERE message_id = $1) GROUP BY group_id, transaction_id ORDER BY group_id`,
    [messageId],
  );
  const transactions = rows.map(({ transaction_id }) => transaction_id);
  expect(transactions).toEqual([...new Set(transactions)]);
  return rows.map(({ types }) => types);
}

test('each transaction about a message that asks, or that a human ends, writes its events in one row', async () => {
  const { id } = await calling({ cents: 5 });
  expect(await outcome(api.client, id, { resolution: 'rejected' })).toBe('200 failed');
  expect(await groupsOf(id)).toEqual([
    expect.stringContaining('message.received'),
    'dispatch.sent',
    'message.input_required policy.approval_required',
    'message.resolved dispatch.failed message.error',
  ]);
});

test("so does an agent's question, with the end of its dispatch", async () => {
  const id = await sent('go');
  await answerMessage(api, id, ASKS);
  expect(await outcome(api.client, id, { resolution: 'declined' })).toBe('200 working');
  const asked = ['dispatch.sent', 'dispatch.success message.input_required', 'message.resolved'];
  expect((await groupsOf(id)).slice(-3)).toEqual(asked);
});
