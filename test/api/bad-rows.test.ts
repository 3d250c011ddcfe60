import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import type { MessageRecord } from '../../contracts/api/messages.js';
import { StreamReader } from '../setup/stream-reader.js';
import { ASKS, answerMessage, COMPLETED, joinOnRecord } from './moving.js';
import { serveApi } from './served-api.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');

const post = async (path: string, body: object) => {
  const answer = await api.client.post(path, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body as { messages: MessageRecord[]; message: MessageRecord; total: number; count: number };
};

/** A call of `/send` in that version. */
async function rpc(method: string, params: object, version: string): Promise<Record<string, unknown>> {
  const answer = await api.client.call(method, params, version);
  expect(answer).toMatchObject({ status: 200, result: expect.any(Object) });
  return answer.result as Record<string, unknown>;
}

/** Content that no schema of today lets in. */
const BAD: [name: string, columns: Record<string, unknown>][] = [
  ['parts of another dialect', { parts: [{ type: 'text', text: 'x' }, null, 7] }],
  ['parts that are no list', { parts: { kind: 'text' } }],
  ['an artifact without an id', { artifacts: [{ parts: [{ kind: 'text', text: 'x' }] }, null, 'x'] }],
  ['an artifact of bad parts', { artifacts: [{ artifactId: 'b', parts: [{ type: 'text' }, null] }] }],
  ['a status message of another dialect', { status_message: { kind: 'message', parts: [{ type: 'text' }] } }],
  ['a status message that is none', { status_message: 'x' }],
  ['turns that are none', { turns: [null, { role: 'agent' }, 7] }],
  ['turns that are no list', { turns: 'x' }],
  ['a fraction of a token', { usage: { input_tokens: 0.5, output_tokens: 1 } }],
];

async function spoil(table: string, messageId: string, columns: Record<string, unknown>): Promise<void> {
  const names = Object.keys(columns);
  const sets = names.map((name, index) => `${name} = $${index + 2}`);
  const values = Object.values(columns).map((value) => JSON.stringify(value));
  await api.database.query(`UPDATE ${table} SET ${sets.join()} WHERE message_id = $1`, [messageId, ...values]);
}

describe('a message whose row holds what does not fit', () => {
  let contextId: string;
  let bad: string;
  let good: string;
  const accept = async () => (await api.client.send('hello', { contextId, blocking: false })).id;
  beforeEach(async () => {
    contextId = (await api.client.send('first', { blocking: false })).contextId;
    bad = await accept();
    good = await accept();
  });

  test.each(BAD)('is shown with the rest, and so are the others: %s', async (_name, columns) => {
    for (const id of [bad, good]) await answerMessage(api, id, COMPLETED);
    await spoil('messages', bad, columns);
    const { messages, count } = await post('/messages/get', { session_id: contextId });
    expect(count).toBe(3);
    expect(messages.map(({ message_id }) => message_id)).toEqual(expect.arrayContaining([bad, good]));
    expect((await post('/messages/get_by_id', { message_id: bad })).message).toMatchObject({ state: 'completed' });
    expect(await rpc('tasks/get', { id: bad }, '0.3')).toMatchObject({ id: bad, status: { state: 'completed' } });
    expect(await rpc('GetTask', { id: bad }, '1.0')).toMatchObject({ id: bad });
    const listed = await rpc('ListTasks', { contextId, includeArtifacts: true }, '1.0');
    expect((listed.tasks as { id: string }[]).map(({ id }) => id)).toEqual(expect.arrayContaining([bad, good]));
    const stream = new StreamReader(api.client, 'tasks/resubscribe', { id: bad });
    await stream.done;
    expect(stream.events.at(0)).toMatchObject({ id: bad });
  });

  test('keeps what does fit', async () => {
    await answerMessage(api, bad, COMPLETED);
    const [artifact] = COMPLETED.artifacts ?? [];
    const mixed = { ...artifact, parts: [{ type: 'text' }, ...(artifact?.parts ?? [])] };
    await spoil('messages', bad, { artifacts: [mixed, { parts: [] }] });
    const { message } = await post('/messages/get_by_id', { message_id: bad });
    expect(message.artifacts).toEqual(COMPLETED.artifacts);
  });

  test('is shown while it waits, with a question that fits', async () => {
    for (const id of [bad, good]) await answerMessage(api, id, ASKS);
    await spoil('messages', bad, { status_message: { parts: 'x' }, turns: [7] });
    await spoil('input_requests', bad, { fields: [{ label: 'no id' }], schema: 'x', arguments: [1] });
    const { messages, total } = await post('/messages/pending', { session_id: contextId });
    expect(total).toBe(2);
    expect(messages.map(({ message_id }) => message_id)).toEqual([bad, good]);
    expect(messages[0]?.input_request).toMatchObject({ title: 'Really?' });
    expect(await rpc('tasks/get', { id: bad }, '0.3')).toMatchObject({ status: { state: 'input-required' } });
  });

  test('is gone on with: its next answer ends it', async () => {
    await answerMessage(api, bad, ASKS);
    await spoil('messages', bad, { artifacts: [null, { parts: [] }] });
    await api.client.post(`/messages/${bad}/resolve`, { resolution: 'confirmed' });
    await answerMessage(api, bad, COMPLETED);
    const { message } = await post('/messages/get_by_id', { message_id: bad });
    expect(message).toMatchObject({ state: 'completed', artifacts: COMPLETED.artifacts });
  });
});

test('usage stays a number however much agents claim', async () => {
  const task = await api.client.send('hello', { blocking: false, messageId: randomUUID() });
  const most = { input_tokens: Number.MAX_SAFE_INTEGER, output_tokens: 1, cost_usd: Number.MAX_VALUE };
  await answerMessage(api, task.id, { ...ASKS, usage: most });
  await api.client.post(`/messages/${task.id}/resolve`, { resolution: 'confirmed' });
  await answerMessage(api, task.id, { ...COMPLETED, usage: most });
  const { message } = await post('/messages/get_by_id', { message_id: task.id });
  expect(message.usage).toEqual({ ...most, output_tokens: 2 });
});
