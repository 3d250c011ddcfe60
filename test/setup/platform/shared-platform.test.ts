import { expect, test } from 'vitest';
import { echo } from '../agent.js';
import { contradictions } from '../histories/record-checker.js';
import { joinAgent } from './fleet.js';
import { sharedPlatform, type TenantPlatform } from './shared-platform.js';

const send = async (shared: TenantPlatform) => {
  await joinAgent(shared.platform, { instanceId: 'echo-1', agentType: 'echo' }, echo);
  return shared.platform.client.send('hello', { metadata: { agent_type: 'echo' }, messageId: 'same-for-both' });
};
const texts = ({ database }: TenantPlatform) =>
  database.query<{ message_id: string }>('SELECT message_id FROM messages ORDER BY message_id');

test('two tenants share a process and see nothing of each other', async () => {
  const [one, other] = [await sharedPlatform(), await sharedPlatform()];
  expect(one.platform.baseUrl).toBe(other.platform.baseUrl);
  const first = await send(one);
  expect(await texts(other)).toEqual([]);
  const second = await send(other);
  expect([await texts(one), await texts(other)]).toEqual([[{ message_id: first.id }], [{ message_id: second.id }]]);
  expect(await other.platform.client.failure('/messages/get_by_id', { message_id: first.id })).toBe('404 NOT_FOUND');
});

test('a contradiction is found in the record of the tenant whose it is, and in no other', async () => {
  const [one, other] = [await sharedPlatform(), await sharedPlatform()];
  const { id } = await send(one);
  await send(other);
  const setState = (state: string) =>
    one.database.query('UPDATE messages SET state = $2 WHERE message_id = $1', [id, state]);
  await setState('failed');
  expect(await contradictions(one.database)).toContainEqual(expect.stringContaining(`broken for ${id}`));
  expect(await contradictions(other.database)).toEqual([]);
  await setState('completed');
});
