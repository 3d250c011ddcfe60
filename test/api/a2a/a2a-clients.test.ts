import { ListTasksRequest, SendMessageRequest, StreamResponse, Task, TaskState } from '@a2a-js/sdk';
import { type Client, ClientFactory, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import {
  type Client as Client03,
  ClientFactory as ClientFactory03,
  JsonRpcTransportFactory as JsonRpcTransportFactory03,
} from 'a2a-sdk-0.3/client';
import { beforeAll, describe, expect, test } from 'vitest';
import { textMessage } from '../../setup/core.js';
import { ASKS, answerMessage, COMPLETED, joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');
const authorization = `Bearer ${await api.client.token()}`;
const authorized: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set('authorization', authorization);
  return fetch(input, { ...init, headers });
};

describe('the published client of A2A 1.0', () => {
  let client: Client;
  let count = 0;
  const send = async (text: string, change: object = {}): Promise<Task> => {
    const message = { messageId: `sdk1-${++count}`, role: 'ROLE_USER', parts: [{ text }], ...change };
    const request = SendMessageRequest.fromJSON({ message, configuration: { returnImmediately: true } });
    const result = await client.sendMessage(request);
    if (!('id' in result)) throw new Error('no task');
    return result;
  };
  beforeAll(async () => {
    const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl: authorized })] });
    client = await factory.createFromUrl(api.baseUrl);
  });

  test('finds the interface on the card and sends, reads, lists and cancels', async () => {
    expect(client.protocolVersion).toBe('1.0');
    const { id, contextId } = await send('hello');
    const read = await client.getTask({ tenant: '', id, historyLength: undefined });
    expect(Task.toJSON(read)).toMatchObject({ id, history: [{ role: 'ROLE_USER', parts: [{ text: 'hello' }] }] });
    const submitted = { contextId, status: 'TASK_STATE_SUBMITTED', pageSize: 10 };
    const listed = await client.listTasks(ListTasksRequest.fromJSON(submitted));
    expect(listed).toMatchObject({ totalSize: 1, tasks: [{ id }] });
    const canceled = await client.cancelTask({ tenant: '', id, metadata: undefined });
    expect(canceled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    await expect(client.cancelTask({ tenant: '', id, metadata: undefined })).rejects.toThrow(/canceled/);
    await expect(client.getTask({ tenant: '', id: 'msg_x', historyLength: undefined })).rejects.toThrow(/not found/);
  });

  test('answers what an agent asks, and follows the task to its end', async () => {
    const { id } = await send('hello');
    await answerMessage(api, id, ASKS);
    const following = client.resubscribeTask({ tenant: '', id });
    expect(StreamResponse.toJSON((await following.next()).value as StreamResponse)).toMatchObject({ task: { id } });
    expect((await send('approved', { taskId: id })).status?.state).toBe(TaskState.TASK_STATE_WORKING);
    await answerMessage(api, id, COMPLETED);
    const rest: unknown[] = [];
    for await (const event of following) rest.push(StreamResponse.toJSON(event));
    expect(rest.at(-1)).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } });
  });

  test('configures push notifications and reads the extended card', async () => {
    const { id: taskId } = await send('hello');
    const named = { tenant: '', taskId, id: 'mine' };
    const config = { ...named, url: 'https://receiver.example/', token: '', authentication: undefined };
    expect(await client.createTaskPushNotificationConfig(config)).toMatchObject({ id: 'mine', taskId });
    expect(await client.getTaskPushNotificationConfig(named)).toMatchObject({ url: config.url });
    const page = { tenant: '', taskId, pageSize: 0, pageToken: '' };
    expect((await client.listTaskPushNotificationConfig(page)).configs).toHaveLength(1);
    await client.deleteTaskPushNotificationConfig(named);
    await expect(client.getTaskPushNotificationConfig(named)).rejects.toThrow();
    const { supportedInterfaces } = await client.getAgentCard();
    expect(supportedInterfaces.map(({ protocolVersion }) => protocolVersion)).toContain('1.0');
  });
});

describe('the published client of A2A 0.3', () => {
  let client: Client03;
  const message = (text: string, change: object = {}) => ({
    ...{ ...textMessage(), parts: [{ kind: 'text' as const, text }] },
    ...change,
  });
  const send = async (text: string, change: object = {}) => {
    const result = await client.sendMessage({ message: message(text, change), configuration: { blocking: false } });
    if (result.kind !== 'task') throw new Error('no task');
    return result;
  };
  beforeAll(async () => {
    const factory = new ClientFactory03({ transports: [new JsonRpcTransportFactory03({ fetchImpl: authorized })] });
    client = await factory.createFromUrl(api.baseUrl);
  });

  test('sends, reads and cancels', async () => {
    const { id } = await send('hello');
    expect(await client.getTask({ id, historyLength: 0 })).toMatchObject({ id, kind: 'task', history: [] });
    expect((await client.cancelTask({ id })).status.state).toBe('canceled');
    await expect(client.cancelTask({ id })).rejects.toThrow();
    await expect(client.getTask({ id: 'msg_x' })).rejects.toThrow();
  });

  test('streams, answers what an agent asks in a stream, and follows a task again', async () => {
    const { id } = await send('hello');
    await answerMessage(api, id, ASKS);
    const waiting: unknown[] = [];
    for await (const event of client.resubscribeTask({ id })) waiting.push(event);
    expect(waiting.at(-1)).toMatchObject({ kind: 'status-update', final: true, status: { state: 'input-required' } });
    const stream = client.sendMessageStream({ message: message('approved', { taskId: id }) });
    expect((await stream.next()).value).toMatchObject({ kind: 'task', id, status: { state: 'working' } });
    await answerMessage(api, id, COMPLETED);
    const rest: unknown[] = [];
    for await (const event of stream) rest.push(event);
    expect(rest.at(-1)).toMatchObject({ kind: 'status-update', final: true, status: { state: 'completed' } });
    const again: unknown[] = [];
    for await (const event of client.resubscribeTask({ id })) again.push(event);
    expect(again).toMatchObject([{ kind: 'task', status: { state: 'completed' } }, { final: true }]);
  });

  test('configures push notifications', async () => {
    const { id: taskId } = await send('hello');
    const pushNotificationConfig = { id: 'mine', url: 'https://receiver.example/' };
    const config = { taskId, pushNotificationConfig };
    expect(await client.setTaskPushNotificationConfig(config)).toEqual(config);
    expect(await client.listTaskPushNotificationConfig({ id: taskId })).toHaveLength(1);
    await client.deleteTaskPushNotificationConfig({ id: taskId, pushNotificationConfigId: 'mine' });
    await expect(client.getTaskPushNotificationConfig({ id: taskId })).rejects.toThrow();
  });
});
