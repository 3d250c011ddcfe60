import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { echo } from '../setup/agent.js';
import { cleanUp } from '../setup/clean-up.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { PATHS } from '../setup/platform/paths.js';
import { startPlatform } from '../setup/platform/platform.js';
import { RowLock } from '../setup/row-lock.js';
import { until } from '../setup/until.js';

test.each(PATHS)('while policies cannot be read, messages are refused and leave nothing, $way', async ({ env }) => {
  const { platform, database, dispose } = await startPlatform(env);
  cleanUp(dispose);
  const { client } = platform;
  const reached: string[] = [];
  await joinAgent(platform, { instanceId: 'writer-1', agentType: 'writer' }, (dispatch) => {
    reached.push(dispatch.text);
    return echo(dispatch);
  });
  const messageId = randomUUID();
  const send = (id: string) => client.rpc('hello', { messageId: id, metadata: { agent_type: 'writer' } });
  expect((await send(randomUUID())).status).toBe(200);
  const recorded = () => database.query<{ count: string }>('SELECT count(*) AS count FROM messages');
  const lock = await RowLock.onTables(database.url, ['policies', 'policy_revisions']);
  // Until then what was read before is trusted, and messages pass.
  let answer = await send(randomUUID());
  await until(async () => {
    answer = await send(randomUUID());
    return answer.status !== 200;
  });
  const before = await recorded();
  const deliveredBefore = reached.length;
  answer = await send(messageId);
  expect(answer).toMatchObject({ status: 503, body: { code: 'SERVICE_UNAVAILABLE' } });
  expect(answer.headers.get('retry-after')).toBe('1');
  expect(await recorded()).toEqual(before);
  expect(reached).toHaveLength(deliveredBefore);
  await lock.release();
  await until(async () => {
    answer = await send(messageId);
    return answer.status === 200;
  });
  expect(answer.body).toMatchObject({ result: { status: { state: 'completed' } } });
  expect(reached).toHaveLength(deliveredBefore + 1);
});
