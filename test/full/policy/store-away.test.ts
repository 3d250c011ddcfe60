import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Task } from '../../../contracts/a2a/a2a.js';
import { echo } from '../../setup/agent.js';
import { joinAgent } from '../../setup/platform/fleet.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { RowLock } from '../../setup/row-lock.js';
import { until } from '../../setup/until.js';

test('while policies cannot be read, messages are refused and leave nothing', async () => {
  const { platform, database } = await startPlatform();
  const { client } = platform;
  const reached: string[] = [];
  await joinAgent(platform, { instanceId: 'writer-1', agentType: 'writer' }, (dispatch) => {
    reached.push(dispatch.text);
    return echo(dispatch);
  });
  const messageId = randomUUID();
  /** Does not wait for the end: what was accepted while policies were still trusted may have to wait for them. */
  const send = (text: string, id: string = randomUUID()) =>
    client.rpc(text, { messageId: id, blocking: false, metadata: { agent_type: 'writer' } });
  expect((await send('before')).status).toBe(200);
  const recorded = () => database.value<string>('SELECT count(*) FROM messages');
  const lock = await RowLock.onTables(database.url, ['policies', 'policy_revisions']);
  // What was read before is trusted for some seconds, and messages pass.
  await until(async () => (await send('meanwhile')).status !== 200);
  const before = await recorded();
  const answer = await send('refused', messageId);
  expect(answer).toMatchObject({ status: 503, body: { code: 'SERVICE_UNAVAILABLE' } });
  expect(answer.headers.get('retry-after')).toBe('1');
  expect(await recorded()).toBe(before);
  expect(reached).not.toContain('refused');
  await lock.release();
  const accepted = await until(async () => {
    const { status, body } = await send('refused', messageId);
    return status === 200 && (body as { result: Task }).result;
  });
  await client.untilState(accepted.id, 'completed');
  expect(reached.filter((text) => text === 'refused')).toHaveLength(1);
});
