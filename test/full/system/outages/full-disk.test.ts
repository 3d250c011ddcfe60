import { expect, onTestFinished, test } from 'vitest';
import type { Task } from '../../../../contracts/a2a/a2a.js';
import { ErrorBody } from '../../../../contracts/primitives.js';
import { openDb } from '../../../../db/pool.js';
import { createLogger } from '../../../../runtime/logger.js';
import type { Dispatched } from '../../../setup/agent.js';
import { freshDatabase } from '../../../setup/database.js';
import { contradictions } from '../../../setup/histories/record-checker.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { SmallDisk } from '../../../setup/small-disk.js';
import { until } from '../../../setup/until.js';
import { byText, joinType, to } from '../../../system/fixture.js';

const disk = await SmallDisk.mount();
const database = await freshDatabase();
await disk.take(database.url);
const { platform } = await startPlatform({}, { database });
const { client } = platform;

test('while the disk of the database is full, calls that write get a 503 and nothing is half done; with room again all goes on', async () => {
  const held: Dispatched[] = [];
  const agent = await joinType(platform, 'worker', byText(held));
  const options = { ...to('worker'), blocking: false };
  const holding: Task[] = [];
  for (let count = 0; count < 3; count += 1) holding.push(await client.send('hold', options));
  await until(() => held.length === holding.length, { what: 'the dispatches' });

  await database.query('SELECT 1'); // on a connection that stays
  disk.volume.fill();
  const sent = new Map<string, string>();
  let refused = '';
  // What room there is in the tables is used up first.
  await until(async () => {
    const messageId = `message-${sent.size}`;
    const answer = await client.rpc('x'.repeat(2_000), { ...options, messageId });
    if (answer.result) sent.set(messageId, (answer.result as Task).id);
    else {
      const { code, error } = ErrorBody.parse(answer.body);
      expect([answer.status, code, error]).toEqual([503, 'SERVICE_UNAVAILABLE', expect.stringMatching(/no room/)]);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(1);
      refused = messageId;
    }
    return refused;
  });
  for (const dispatch of held) dispatch.result('y'.repeat(100_000));
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
  const again = await client.send('x'.repeat(2_000), { ...to('worker'), messageId: refused });
  expect(again.status.state).toBe('completed');
  expect(agent.isOpen).toBe(true);
  expect(agent.received.filter(({ type }) => type === 'welcome')).toHaveLength(1);
}, 120_000);
