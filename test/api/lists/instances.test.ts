import { expect, test } from 'vitest';
import { MessagesGetResponse } from '../../../contracts/api/messages.js';
import { rowsRead } from '../../setup/rows-read.js';
import { serveApi } from '../served-api.js';
import { insertPastMessages } from './past-messages.js';

const api = await serveApi();

/**
 * Messages that `busy-1` has done, one in ten seconds, the newest first in number 1. Each is dispatched a second after it came, every 50th once
 * more eleven hours later. Every 70th has failed.
 */
async function insertMessages(tenantId: string, from: number, to: number): Promise<void> {
  const isBad = 'n % 70 = 0';
  await insertPastMessages(api.database, {
    ...{ tenantId, from, to, at: "now() - interval '12 h' - n * interval '10 s'", instance: "'busy-1'" },
    ...{
      state: `CASE WHEN ${isBad} THEN 'failed' ELSE 'completed' END`,
      error: `CASE WHEN ${isBad} THEN 'INTERNAL' END`,
    },
  });
  await api.database.query(
    `INSERT INTO dispatches (tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, epoch, attempt, state, created_at)
     SELECT tenant_id, replace(message_id, 'msg_', 'dsp_') || again, message_id, 'busy-1', 'worker', 'hosted', 0, 1, 'completed',
            created_at + interval '1 s' + again * interval '11 h'
       FROM messages, generate_series(0, CASE WHEN right(message_id, 12)::int % 50 = 0 THEN 1 ELSE 0 END) again
      WHERE tenant_id = $1 AND right(message_id, 12)::int BETWEEN $2 AND $3`,
    [tenantId, from, to],
  );
  await api.database.query('ANALYZE dispatches');
}

async function pagesOf(tenantId: string) {
  const client = await api.clientOf(tenantId, ['read']);
  await client.token();
  return async (body: object) => {
    const query = { instance_id: 'busy-1', page_size: 100, ...body };
    const { messages, ...page } = await client.ok('/messages/get', query, MessagesGetResponse.strict());
    return { ids: messages.map(({ message_id }) => message_id), ...page };
  };
}

const inOrder = (tenantId: string, condition = 'true') =>
  api.database.column<string>(
    `SELECT message_id FROM messages WHERE tenant_id = $1 AND ${condition} ORDER BY message_id DESC`,
    [tenantId],
  );

test('the messages of an instance have pages in their order, whenever they were dispatched last', async () => {
  const tenantId = await api.otherTenant();
  await insertMessages(tenantId, 1, 6_000);
  const page = await pagesOf(tenantId);
  const all = await inOrder(tenantId);
  for (const number of [1, 2, 30, 60])
    expect(await page({ page: number })).toMatchObject({
      ...{ ids: all.slice((number - 1) * 100, number * 100), count: 6_000, total_pages: 60 },
    });
  expect((await page({ page: 61 })).ids).toEqual([]);
  const failed = await inOrder(tenantId, "error_code = 'INTERNAL'");
  expect(await page({ error_code: 'INTERNAL' })).toMatchObject({ ids: failed, count: failed.length });
  expect(await page({ session_id: 'ses_50' })).toMatchObject({ ids: [all[49]], count: 1 });
  expect(await page({ instance_id: 'busy-2' })).toMatchObject({ ids: [], count: 0 });
});

test('a page of them reads the same number of rows however many there are', async () => {
  const tenantId = await api.otherTenant();
  const page = await pagesOf(tenantId);
  // Another time each, because a list that is known to be long is not counted again.
  const read = (since: string) =>
    rowsRead(api.database, /^(messages|dispatches)/, async () => {
      expect(await page({ page: 3, since })).toMatchObject({ count_estimated: true, ids: expect.any(Array) });
    });
  await insertMessages(tenantId, 1, 25_000);
  const before = await read('2020-01-01T00:00:00Z');
  await insertMessages(tenantId, 25_001, 75_000);
  const after = await read('2020-01-02T00:00:00Z');
  expect(after).toBeLessThan(before * 1.2);
});
