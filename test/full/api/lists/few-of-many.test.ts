import { expect, test } from 'vitest';
import { MessagesGetResponse } from '../../../../contracts/api/messages.js';
import { LIMITS } from '../../../../contracts/limits.js';
import { insertPastMessages } from '../../../api/lists/past-messages.js';
import { serveApi } from '../../../api/served-api.js';
import { rowsRead } from '../../../setup/rows-read.js';

const api = await serveApi();
/** More than are counted, so that a count reads as many of them however many there are. */
const MANY = LIMITS.countExactMax + 200;

/** Messages of one session, one a millisecond, the first `from` milliseconds after a day ago; one in `canceledOneIn` was canceled. */
const insertMessages = (tenantId: string, from: number, count: number, canceledOneIn: number) =>
  insertPastMessages(api.database, {
    ...{
      tenantId,
      from,
      to: from + count - 1,
      at: "now() - interval '1 day' + n * interval '1 ms'",
      session: "'long'",
    },
    state: `CASE WHEN n % ${canceledOneIn} = 0 THEN 'canceled' ELSE 'completed' END`,
  });

test('what few messages of many fit, and the newest of a long session, are found without a look at the others', async () => {
  const tenantId = await api.otherTenant();
  const client = await api.clientOf(tenantId, ['full']);
  await client.token();
  await insertMessages(tenantId, 1, MANY, 500);
  const canceled = async (body: object) => {
    const { messages } = await client.ok('/messages/get', { state: 'canceled', ...body }, MessagesGetResponse.strict());
    expect(messages.map(({ state }) => state)).toEqual(messages.map(() => 'canceled'));
    return messages.length;
  };
  const tasks = async (params: object) => {
    const { result } = await client.call('ListTasks', { pageSize: 10, ...params }, '1.0');
    return (result as { tasks: unknown[] }).tasks.length;
  };
  const lists: (() => Promise<number>)[] = [
    () => canceled({ page_size: 10 }),
    () => canceled({ page_size: 10, session_id: 'long' }),
    () => tasks({ status: 'TASK_STATE_CANCELED' }),
    () => tasks({ contextId: 'long' }),
  ];
  const readBy = (list: () => Promise<number>) =>
    rowsRead(api.database, /^messages/, async () => expect(await list()).toBe(10));
  const before = [];
  for (const list of lists) before.push(await readBy(list));
  await insertMessages(tenantId, MANY + 1, MANY, MANY * 3);
  for (const [place, list] of lists.entries()) {
    expect(await readBy(list), `list ${place}`).toBeLessThan((before[place] ?? 0) * 1.2 + 5);
  }
});
