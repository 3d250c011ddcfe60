import { beforeAll, describe, expect, test } from 'vitest';
import { insertAgent } from '../../setup/core.js';
import type { ApiClient } from '../../setup/platform/api-client.js';
import { serveApi } from '../served-api.js';
import { insertPastMessages } from './past-messages.js';

const api = await serveApi({ tenantMaxInFlight: 1_000 });

interface ListedTask {
  id: string;
  artifacts?: unknown[];
}
interface TaskPage {
  tasks: ListedTask[];
  nextPageToken: string;
  totalSize: number;
}
const list = async (client: ApiClient, params: object): Promise<TaskPage> => {
  const { result, error } = await client.call('ListTasks', params, '1.0');
  expect(error).toBeUndefined();
  return result as TaskPage;
};

/** All pages; `between` runs after each of them. */
async function allPages(client: ApiClient, params: object, between: () => Promise<unknown> = async () => undefined) {
  const pages: TaskPage[] = [];
  let pageToken = '';
  do {
    const page = await list(client, { ...params, pageToken });
    pages.push(page);
    pageToken = page.nextPageToken;
    await between();
  } while (pageToken !== '');
  return { ids: pages.flatMap(({ tasks }) => tasks.map(({ id }) => id)), pages };
}

/**
 * Messages of the last hours, one in `everyMs`: each has changed for the last time up to nine seconds after it was accepted, every hundredth
 * ten minutes after it. One in `rareOneIn` has the first state, the others the second.
 */
const insertMessages = (tenantId: string, to: number, everyMs: number, rareOneIn: number, [rare, other]: string[]) =>
  insertPastMessages(api.database, {
    ...{ tenantId, to, at: `now() - interval '3 h' + n * ${everyMs} * interval '1 ms'` },
    changed: "at + CASE WHEN n % 100 = 0 THEN interval '10 min' ELSE (n * 7919 % 9000) * interval '1 ms' END",
    state: `CASE WHEN n % ${rareOneIn} = 0 THEN '${rare}' ELSE '${other}' END`,
  });
const inOrder = (tenantId: string, condition = 'true') =>
  api.database.column<string>(
    `SELECT message_id FROM messages WHERE tenant_id = $1 AND ${condition} ORDER BY updated_at DESC, message_id DESC`,
    [tenantId],
  );

describe('ListTasks of a whole tenant', () => {
  let tenantId: string;
  let client: ApiClient;
  beforeAll(async () => {
    tenantId = await api.otherTenant();
    client = await api.clientOf(tenantId, ['full']);
    await insertAgent(api.database, { tenant_id: tenantId, instance_id: 'worker-1', status: 'offline' });
    await insertMessages(tenantId, 1_500, 50, 500, ['canceled', 'completed']);
  });

  test('gives each task once, in the order of the last changes, while others are sent', async () => {
    const expected = await inOrder(tenantId);
    const { ids, pages } = await allPages(client, { pageSize: 70 }, () => client.send('hello', { blocking: false }));
    expect(ids).toEqual(expected);
    expect(pages[0]?.totalSize).toBe(1_500);
    expect(pages.at(-1)?.totalSize).toBeGreaterThan(1_500);
  });

  test('gives an old task first that changes now, wherever it changes', async () => {
    const { id } = await client.send('hello', { blocking: false });
    const old = 'msg_00000000-0001-7000-8000-000000000000';
    for (const table of ['messages', 'running_messages'])
      await api.database.query(`UPDATE ${table} SET message_id = $2 WHERE message_id = $1`, [id, old]);
    expect((await list(client, { pageSize: 5, status: 'TASK_STATE_CANCELED' })).tasks[0]?.id).not.toBe(old);
    expect((await client.post('/messages/cancel', { message_id: old })).status).toBe(200);
    expect((await list(client, { pageSize: 5 })).tasks[0]?.id).toBe(old);
    expect((await list(client, { pageSize: 5, status: 'TASK_STATE_CANCELED' })).tasks[0]?.id).toBe(old);
  });

  test('filters by state and by time of change', async () => {
    const canceled = await allPages(client, { status: 'TASK_STATE_CANCELED', pageSize: 2 });
    expect(canceled.ids).toEqual(await inOrder(tenantId, "state = 'canceled'"));
    const submitted = await allPages(client, { status: 'TASK_STATE_SUBMITTED', pageSize: 3 });
    expect(submitted.ids).toEqual(await inOrder(tenantId, "state = 'submitted'"));
    const middle = 'SELECT updated_at FROM messages WHERE tenant_id = $1 ORDER BY updated_at DESC OFFSET 700 LIMIT 1';
    const since = (await api.database.value<Date>(middle, [tenantId]))?.toISOString() ?? '';
    const newer = await allPages(client, { statusTimestampAfter: since });
    expect(newer.ids).toEqual(await inOrder(tenantId, `updated_at >= '${since}'`));
    expect(newer.pages[0]?.totalSize).toBe(newer.ids.length);
  });

  test('knows its page tokens, and those of no other list', async () => {
    const other = await api.clientOf(await api.otherTenant(), ['full']);
    const { nextPageToken: pageToken } = await list(client, { pageSize: 10 });
    expect((await list(client, { pageSize: 3, historyLength: 0, pageToken })).tasks).toHaveLength(3);
    const second = await api.clientOf(tenantId, ['read']);
    expect((await list(second, { pageToken })).tasks).toHaveLength(50);
    const bytes = Buffer.from(pageToken, 'base64url');
    const changed = [0, 20, bytes.length - 2].map((place) => {
      const copy = Buffer.from(bytes);
      copy[place] = (copy[place] ?? 0) ^ 1;
      return copy.toString('base64url');
    });
    const refused = [
      ...changed.map((token) => ({ pageToken: token })),
      { pageToken: pageToken.slice(0, 10) },
      { pageToken: 'x' },
      { pageToken, status: 'TASK_STATE_COMPLETED' },
      { pageToken, contextId: 'ses_1' },
      { pageToken, statusTimestampAfter: '2020-01-01T00:00:00Z' },
    ];
    for (const params of refused) {
      expect((await client.call('ListTasks', params, '1.0')).error?.code, JSON.stringify(params)).toBe(-32602);
    }
    const agent = api.clientWith(await api.tokenOf(['read'], 'worker', tenantId));
    for (const stranger of [other, agent])
      expect((await stranger.call('ListTasks', { pageToken }, '1.0')).error?.code).toBe(-32602);
  });
});

test('ListTasks whose filters hardly any task fits gives short pages that lead on', async () => {
  const tenantId = await api.otherTenant();
  const client = await api.clientOf(tenantId, ['full']);
  await insertMessages(tenantId, 45_000, 200, 20_000, ['completed', 'canceled']);
  const { ids, pages } = await allPages(client, { status: 'TASK_STATE_COMPLETED' });
  expect(ids).toEqual(await inOrder(tenantId, "state = 'completed'"));
  expect(ids).toHaveLength(2);
  expect(pages.length).toBeGreaterThan(1);
  expect(pages.length).toBeLessThan(30); // each passes thousands of messages, or of late changes
});
