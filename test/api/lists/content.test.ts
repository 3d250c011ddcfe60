import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { MessagesGetResponse, MessagesPendingResponse } from '../../../contracts/api/messages.js';
import { LIMITS } from '../../../contracts/limits.js';
import { ASKS, answerMessage, COMPLETED, joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');
interface ListedTask {
  id: string;
  artifacts?: unknown[];
}
const MEGABYTE = 1_000_000;
/** What does not become smaller where it is stored, and what does. */
const TEXTS: [name: string, text: (bytes: number) => string][] = [
  ['of chance', (bytes) => randomBytes(bytes / 2).toString('hex')],
  ['that repeats itself', (bytes) => 'again '.repeat(bytes / 6)],
];

/** Sends messages of one session whose artifacts have so many bytes. @returns the session and the ids, the newest first */
async function sent(sizes: number[], text: (bytes: number) => string) {
  let contextId: string | undefined;
  const ids: string[] = [];
  for (const size of sizes) {
    const task = await api.client.send('hello', { blocking: false, ...(contextId && { contextId }) });
    contextId = task.contextId;
    ids.unshift(task.id);
    await answerMessage(api, task.id, COMPLETED);
    const artifacts = [{ artifactId: 'a', parts: [{ kind: 'text', text: text(size) }] }];
    const set = 'UPDATE messages SET artifacts = $2 WHERE message_id = $1';
    await api.database.query(set, [task.id, JSON.stringify(artifacts)]);
  }
  return { contextId, ids };
}
const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

describe.each(TEXTS)('a page of large answers %s', (_name, text) => {
  let session: string | undefined;
  let ids: string[];
  beforeAll(async () => {
    // The newest has more than a page holds; then the small ones, and six of a megabyte.
    const sizes = [100, 1, 1, 1, 1, 1, 1].map((size) => (size === 1 ? MEGABYTE : size));
    ({ contextId: session, ids } = await sent([...sizes, 100, LIMITS.pageContentBytes - 3.5 * MEGABYTE], text));
  });

  test('has the content of as many messages as there is room for, and marks the others', async () => {
    const body = { session_id: session };
    const { messages, count } = await api.client.ok('/messages/get', body, MessagesGetResponse.strict());
    expect(count).toBe(9);
    expect(messages.map(({ message_id }) => message_id)).toEqual(ids);
    const whole = messages.map(({ truncated }) => truncated !== true);
    expect(whole).toEqual([true, true, true, true, true, false, false, false, true]);
    for (const { truncated, artifacts, assistant_output, task_data, state } of messages) {
      expect(state).toBe('completed');
      if (truncated)
        expect([artifacts, assistant_output, task_data.artifacts, task_data.history]).toEqual([[], '', [], []]);
      else expect(artifacts).toHaveLength(1);
    }
    const message = await api.client.message(messages[5]?.message_id ?? '');
    expect(message).not.toHaveProperty('truncated');
    expect(message.assistant_output.length).toBeGreaterThan(MEGABYTE / 2);
  });

  test('of ListTasks ends where there is no more room, and the pages have each task once', async () => {
    const seen: string[] = [];
    const sizes: number[] = [];
    let pageToken = '';
    do {
      const params = { contextId: session, includeArtifacts: true, pageToken };
      const { result } = await api.client.call('ListTasks', params, '1.0');
      const page = result as { tasks: ListedTask[]; nextPageToken: string; totalSize: number };
      expect(page.totalSize).toBe(9);
      expect(bytesOf(page.tasks.map(({ artifacts }) => artifacts))).toBeLessThan(LIMITS.pageContentBytes * 1.1);
      for (const { artifacts } of page.tasks) expect(artifacts).toHaveLength(1);
      seen.push(...page.tasks.map(({ id }) => id));
      sizes.push(page.tasks.length);
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    expect(seen.toSorted()).toEqual(ids.toSorted());
    expect(sizes.length).toBeGreaterThan(1);
    const { result } = await api.client.call('ListTasks', { contextId: session }, '1.0');
    expect(result).toMatchObject({ nextPageToken: '', totalSize: 9 });
  });
});

test('a message that alone has more than a page holds is whole where it is the first', async () => {
  const hex = (bytes: number) => randomBytes(bytes / 2).toString('hex');
  const { contextId, ids } = await sent([10, LIMITS.pageContentBytes + MEGABYTE], hex);
  const { messages } = await api.client.ok('/messages/get', { session_id: contextId }, MessagesGetResponse.strict());
  expect(messages.map(({ message_id, truncated }) => [message_id, truncated])).toEqual([
    [ids[0], undefined],
    [ids[1], undefined],
  ]);
});

test('what waits for a human is listed without a question that is too large', async () => {
  const tasks = [];
  for (let asked = 0; asked < 6; asked += 1) {
    const task = await api.client.send('hello', { blocking: false });
    await answerMessage(api, task.id, ASKS);
    tasks.push(task.id);
  }
  const set = "UPDATE input_requests SET arguments = jsonb_build_object('text', $1::text), tool = 'write'";
  await api.database.query(set, [randomBytes(MEGABYTE / 2).toString('hex')]);
  const { messages, total } = await api.client.ok('/messages/pending', {}, MessagesPendingResponse.strict());
  expect(total).toBe(6);
  expect(messages.map(({ message_id }) => message_id)).toEqual(tasks);
  expect(messages.map(({ truncated }) => truncated === true)).toEqual([false, false, false, false, true, true]);
  expect(messages[5]?.input_request).toMatchObject({ title: 'Really?', tool: 'write' });
  expect(messages[5]?.input_request).not.toHaveProperty('arguments');
  expect(messages[0]?.input_request?.arguments).toMatchObject({ text: expect.any(String) });
});
