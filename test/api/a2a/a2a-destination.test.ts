import { beforeAll, describe, expect, test } from 'vitest';
import type { Task } from '../../../contracts/a2a/a2a.js';
import { fits } from '../../../messages/accept/destination.js';
import { textMessage } from '../../setup/core.js';
import type { RpcAnswer } from '../../setup/platform/api-client.js';
import { joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');

async function declare(instanceId: string, agent_card: object): Promise<void> {
  const set = 'UPDATE agents SET agent_card = $2 WHERE instance_id = $1';
  await api.database.query(set, [instanceId, JSON.stringify(agent_card)]);
}

async function send(change: object, messageChange: object = {}) {
  const message = textMessage('hello', messageChange);
  const { configuration = {}, ...rest } = change as { configuration?: object };
  const params = { message, configuration: { blocking: false, ...configuration }, ...rest };
  return (await api.client.call('message/send', params)) as RpcAnswer & { result?: Task };
}

describe('target_agent', () => {
  async function wants(id: string | undefined) {
    const [row] = await api.database.query(
      `SELECT r.want_instance_id, m.want_agent_type FROM messages m LEFT JOIN running_messages r USING (tenant_id, message_id)
        WHERE m.message_id = $1`,
      [id],
    );
    return row;
  }

  test.each([
    ['the instance of that name', { target_agent: 'worker-1' }, 'worker-1', null],
    ['else a type', { target_agent: 'writer' }, null, 'writer'],
    ['what is said more exactly goes first', { target_agent: 'writer', agent_type: 'worker' }, null, 'worker'],
  ])('names %s', async (_what, metadata, want_instance_id, want_agent_type) => {
    const wanted = { want_instance_id, want_agent_type };
    expect(await wants((await send({ metadata })).result?.id)).toEqual(wanted);
    expect(await wants((await send({}, { metadata })).result?.id)).toEqual(wanted);
  });

  test('that is no name is refused', async () => {
    for (const target_agent of [7, '', 'x'.repeat(129)])
      expect((await send({ metadata: { target_agent } })).error?.code).toBe(-32602);
    expect((await send({}, { metadata: { target_agent: { a: 1 } } })).error?.code).toBe(-32602);
  });
});

const none = { input: [], output: [] };
test.each([
  [none, { input: ['image/png'], output: ['text/plain'] }, true],
  [{ input: ['text/plain'], output: [] }, { input: ['image/png'], output: [] }, false],
  [{ input: ['image/*'], output: [] }, { input: ['image/png', 'IMAGE/JPEG'], output: [] }, true],
  [{ input: ['image/*'], output: [] }, { input: ['image/png', 'text/csv'], output: [] }, false],
  [{ input: ['*/*'], output: ['text/plain'] }, { input: ['x/y'], output: ['application/json', 'text/*'] }, true],
  [{ input: [], output: ['text/plain; charset=utf-8'] }, { input: [], output: ['text/plain'] }, true],
  [{ input: [], output: ['text/plain'] }, { input: [], output: ['application/json'] }, false],
  [{ input: [], output: ['text/plain'] }, { input: ['x/y'], output: [] }, true],
])('an agent of %j and a message of %j: %s', (modes, wanted, answer) => {
  expect(fits(modes, wanted)).toBe(answer);
});

describe('media types', () => {
  const PNG = { parts: [{ kind: 'file', file: { bytes: 'aGk=', mimeType: 'image/png' } }] };
  const accept = (...acceptedOutputModes: string[]) => ({ configuration: { acceptedOutputModes } });
  beforeAll(async () => {
    await joinOnRecord(api, 'painter-1');
    await declare('worker-1', { defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'] });
    await declare('painter-1', {
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [{ id: 'paint', inputModes: ['image/*'], outputModes: ['image/png'] }],
    });
  });

  test('that some agent takes and gives are accepted', async () => {
    expect((await send({}, PNG)).error).toBeUndefined();
    expect((await send(accept('image/png', 'video/mp4'))).error).toBeUndefined();
    expect((await send(accept())).error).toBeUndefined();
  });

  test('that no agent gives, or takes, or only another agent than the one that is named: -32005', async () => {
    const film = { parts: [{ kind: 'file', file: { uri: 'https://x.example', mimeType: 'video/mp4' } }] };
    for (const [change, message] of [
      [accept('video/mp4'), {}],
      [{}, film],
      [{ metadata: { instance_id: 'worker-1' } }, PNG],
      [{ metadata: { target_agent: 'worker-1' } }, PNG],
    ] as const)
      expect((await send(change, message)).error?.code).toBe(-32005);
    expect((await send({ metadata: { agent_type: 'nobody' } }, PNG)).error).toBeUndefined();
  });

  test('are not looked at again when a message is repeated', async () => {
    const messageId = 'again';
    const first = await send(accept('image/png'), { messageId });
    await declare('painter-1', { defaultOutputModes: ['text/plain'] });
    const again = await send(accept('image/png'), { messageId });
    expect(again.result?.id).toBe(first.result?.id);
    expect(again.error).toBeUndefined();
  });

  test('that are accepted are told to the agent', async () => {
    const task = (await send(accept('text/plain'))).result as Task;
    const [row] = await api.database.query('SELECT metadata FROM messages WHERE message_id = $1', [task.id]);
    expect(row).toEqual({ metadata: { accepted_output_modes: ['text/plain'] } });
  });
});
