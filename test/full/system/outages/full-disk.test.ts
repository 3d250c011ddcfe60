import { expect, onTestFinished, test } from 'vitest';
import type { Task } from '../../../../contracts/a2a/a2a.js';
import { ErrorBody } from '../../../../contracts/primitives.js';
import { openDb } from '../../../../db/pool.js';
import { createLogger } from '../../../../runtime/logger.js';
import { type Dispatched, serve } from '../../../setup/agent.js';
import { contradictions } from '../../../setup/histories/record-checker.js';
import { joinAgent } from '../../../setup/platform/fleet.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { SmallDisk } from '../../../setup/small-disk.js';
import { until } from '../../../setup/until.js';

const disk = await SmallDisk.mount();
const { platform, database } = await startPlatform(
  {},
  {
    wayTo: async (url) => {
      await disk.take(url);
      return url;
    },
  },
);
const { client } = platform;

test('while the disk of the database is full, calls that write get a 503 and nothing is half done; with room again all goes on', async () => {
  const agent = await joinAgent(platform, { instanceId: 'worker-1', agentType: 'worker', maxConcurrentSessions: 0 });
  const held = new Map<string, Dispatched>();
  serve(agent, (dispatch) =>
    dispatch.text.startsWith('hold') ? void held.set(dispatch.text, dispatch) : dispatch.result('done'),
  );
  const to = { metadata: { agent_type: 'worker' } };
  const holding: Task[] = [];
  for (const text of ['hold 1', 'hold 2', 'hold 3']) holding.push(await client.send(text, { ...to, blocking: false }));
  await until(() => held.size === holding.length, { what: 'the dispatches' });

  await database.query('SELECT 1'); // on a connection that stays
  disk.volume.fill();
  const sent = new Map<string, string>();
  let refused = '';
  // What room there is in the tables is used up first.
  await until(async () => {
    const messageId = `message-${sent.size}`;
    const answer = await client.rpc('x'.repeat(2_000), { ...to, messageId, blocking: false });
    if (answer.result) sent.set(messageId, (answer.result as Task).id);
    else {
      const { code, error } = ErrorBody.parse(answer.body);
      expect([answer.status, code, error]).toEqual([503, 'SERVICE_UNAVAILABLE', expect.stringMatching(/no room/)]);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(1);
      refused = messageId;
    }
    return refused;
  });
  for (const dispatch of held.values()) dispatch.result('y'.repeat(100_000));
  const read = await client.message(holding[0]?.id ?? '');
  expect(read.message_id).toBe(holding[0]?.id);
  expect(await contradictions(database)).toEqual([]);
  expect(await database.query('SELECT 1 FROM messages WHERE client_message_id = $1', [refused])).toEqual([]);
  await until(() => platform.log().includes('database write failed, retrying'), { what: 'results that wait' });

  disk.fillForNewConnections();
  const connecting = openDb({ url: database.url, log: createLogger({ level: 'silent' }) });
  onTestFinished(() => connecting.close());
  const refusal = { code: 'SERVICE_UNAVAILABLE', message: expect.stringMatching(/no room/) };
  await expect(connecting.system((tx) => tx.query('SELECT 1'))).rejects.toMatchObject(refusal);

  disk.volume.empty();
  for (const { id } of holding) await client.untilState(id, 'completed');
  for (const id of sent.values()) await client.untilState(id, 'completed');
  const again = await client.send('x'.repeat(2_000), { ...to, messageId: refused });
  expect(again.status.state).toBe('completed');
  expect(agent.isOpen).toBe(true);
  expect(agent.received.filter(({ type }) => type === 'welcome')).toHaveLength(1);
}, 120_000);
