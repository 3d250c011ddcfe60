import { describe, expect, test } from 'vitest';
import { textMessage } from '../../setup/core.js';
import type { RpcAnswer } from '../../setup/platform/api-client.js';
import { joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');

async function call(version: string, method: string, params: unknown): Promise<RpcAnswer> {
  const answer = await api.client.call(method, params, version);
  expect(answer.status).toBe(200);
  return answer;
}

const newTask = async () => (await api.client.send('hello', { blocking: false })).id;
const URL_1 = 'https://receiver.example/one';
const names = { '0.3': 'tasks/pushNotificationConfig/', '1.0': 'TaskPushNotificationConfig' };

describe('A2A 0.3', () => {
  const push = (method: string, params: unknown) => call('0.3', names['0.3'] + method, params);

  test('a config is set, read, listed and deleted', async () => {
    const taskId = await newTask();
    const authentication = { schemes: ['Bearer'], credentials: 'c' };
    const set = { taskId, pushNotificationConfig: { id: 'mine', url: URL_1, token: 't', authentication } };
    expect((await push('set', set)).result).toEqual(set);
    const withoutSecrets = { id: 'mine', url: URL_1, authentication: { schemes: ['Bearer'] } };
    const shown = { taskId, pushNotificationConfig: withoutSecrets };
    expect((await push('get', { id: taskId, pushNotificationConfigId: 'mine' })).result).toEqual(shown);
    expect((await push('get', { id: taskId })).result).toEqual(shown);
    expect((await push('list', { id: taskId })).result).toEqual([shown]);
    const gone = { id: taskId, pushNotificationConfigId: 'mine' };
    expect(await push('delete', gone)).toMatchObject({ result: null });
    expect(await push('delete', gone)).toMatchObject({ result: null });
    expect((await push('list', { id: taskId })).result).toEqual([]);
    expect((await push('get', gone)).error?.code).toBe(-32001);
  });

  test('a config that comes with a message is that of its task', async () => {
    const configuration = { blocking: false, pushNotificationConfig: { url: URL_1 } };
    const { result } = await call('0.3', 'message/send', { message: textMessage(), configuration });
    const taskId = (result as { id: string }).id;
    const listed = [{ taskId, pushNotificationConfig: { id: taskId, url: URL_1 } }];
    expect((await push('list', { id: taskId })).result).toEqual(listed);
  });

  test.each<[string, unknown, number]>([
    ['set', { taskId: 'msg_x', pushNotificationConfig: {} }, -32602],
    ['delete', { id: 'msg_x' }, -32602],
  ])('%s %j: %i', async (method, params, code) => {
    expect((await push(method, params)).error?.code).toBe(code);
  });
});

describe('A2A 1.0', () => {
  const push = (verb: string, params: unknown, plural = '') => call('1.0', verb + names['1.0'] + plural, params);

  test('a config is created, read, listed in pages and deleted', async () => {
    const taskId = await newTask();
    const authentication = { scheme: 'Bearer', credentials: 'c' };
    const config = { taskId, id: 'mine', url: URL_1, token: 't', authentication };
    expect((await push('Create', config)).result).toEqual(config);
    const shown = { taskId, id: 'mine', url: URL_1, authentication: { scheme: 'Bearer' } };
    expect((await push('Get', { taskId, id: 'mine' })).result).toEqual(shown);
    const other = { taskId, id: 'other', url: URL_1 };
    expect((await push('Create', { task_id: taskId, id: 'other', url: URL_1 })).result).toEqual(other);
    const { result: first } = await push('List', { taskId, pageSize: 1 }, 's');
    expect(first).toEqual({ configs: [shown], nextPageToken: expect.any(String) });
    const { nextPageToken: pageToken } = first as { nextPageToken: string };
    const { result: second } = await push('List', { taskId, pageSize: 1, pageToken }, 's');
    expect(second).toEqual({ configs: [other], nextPageToken: '' });
    expect((await push('Delete', { taskId, id: 'mine' })).result).toEqual({});
    expect((await push('Delete', { taskId, id: 'mine' })).result).toEqual({});
    expect((await push('Get', { taskId, id: 'mine' })).error?.code).toBe(-32001);
  });

  test('a config that comes with a message is that of its task', async () => {
    const message = { messageId: 'p-2', role: 'ROLE_USER', parts: [{ text: 'hello' }] };
    const taskPushNotificationConfig = { id: 'c', url: URL_1, authentication: { scheme: 'Basic', credentials: 'x' } };
    const configuration = { returnImmediately: true, taskPushNotificationConfig };
    const { result } = await call('1.0', 'SendMessage', { message, configuration });
    const taskId = (result as { task: { id: string } }).task.id;
    expect((await push('Get', { taskId, id: 'c' })).result).toMatchObject({ authentication: { scheme: 'Basic' } });
  });

  test.each<[string, unknown, number]>([
    ['Create', { taskId: 'msg_x', url: URL_1 }, -32001],
    ['Get', { taskId: 'msg_x', id: 'a' }, -32001],
    ['Delete', { taskId: 'msg_x', id: 'a' }, -32001],
    ['Create', { taskId: 'msg_x' }, -32602],
    ['Create', { taskId: 'msg_x', url: URL_1, authentication: {} }, -32602],
    ['Get', { taskId: 'msg_x' }, -32602],
  ])('%s %j: %i', async (verb, params, code) => {
    expect((await push(verb, params)).error?.code).toBe(code);
  });
});
