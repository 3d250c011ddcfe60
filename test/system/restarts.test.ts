// @module-tag once
import { expect, test } from 'vitest';
import type { Task } from '../../contracts/a2a/a2a.js';
import { freePort } from '../../embedded/free-port.js';
import type { Behaviour, Dispatched } from '../setup/agent.js';
import { leftovers } from '../setup/histories/record-checker.js';
import { JournalingAgent, openSocket, registerAgent } from '../setup/platform/fleet.js';
import { startPlatform } from '../setup/platform/platform.js';
import { until } from '../setup/until.js';
import { to } from './fixture.js';

/** Fixed, so that the agent finds the platform after a restart. */
const ports = { FLEET_API_PORT: String(await freePort()), FLEET_MESH_PORT: String(await freePort()) };
const { platform, database } = await startPlatform({ ...ports, QUEUE_WAIT_MS: '60000' });
const { client } = platform;
const MESSAGES = 60;

/** What the agent has in hand until it may answer. */
const held: Dispatched[] = [];
let mayAnswer = false;
const work: Behaviour = (dispatch) => {
  if (mayAnswer) dispatch.result(`done: ${dispatch.text}`);
  else held.push(dispatch);
};
const options = { instanceId: 'worker-1', agentType: 'worker', maxConcurrentSessions: 0, keepsWork: true };
const agent = await new JournalingAgent(platform, options, work).start();

/** Sends messages, each until it is acknowledged. @returns the ids of their tasks by their own */
async function sendAll(ids: string[]): Promise<Map<string, string>> {
  const send = async (messageId: string) => {
    const answer = await until(
      async () => (await client.rpc(messageId, { ...to('worker'), messageId, blocking: false })).result,
      { timeoutMs: 60_000, what: `the acknowledgement of ${messageId}` },
    );
    return [messageId, (answer as Task).id] as const;
  };
  return new Map(await Promise.all(ids.map(send)));
}

const idsOf = (round: string) => Array.from({ length: MESSAGES }, (_, index) => `${round}-${index}`);

/** Each acknowledged message is on the record once, has ended, and reached the agent in one dispatch. */
async function expectOnce(acknowledged: Map<string, string>): Promise<void> {
  for (const id of acknowledged.values())
    await until(async () => (await client.message(id)).completed_at, { timeoutMs: 60_000, what: `the end of ${id}` });
  expect(await leftovers(database)).toEqual([]);
  const rows = await database.query<{ client_message_id: string; message_id: string }>(
    'SELECT client_message_id, message_id FROM messages WHERE client_message_id = ANY ($1)',
    [[...acknowledged.keys()]],
  );
  expect(rows).toHaveLength(acknowledged.size);
  expect(new Map(rows.map((row) => [row.client_message_id, row.message_id]))).toEqual(acknowledged);
  const dispatches = new Map<string, Set<string>>();
  for (const { message_id, dispatch_id } of agent.journal)
    dispatches.set(message_id, (dispatches.get(message_id) ?? new Set()).add(dispatch_id));
  expect([...dispatches.values()].filter((ids) => ids.size > 1)).toEqual([]);
}

test('kill -9 with messages in flight: each acknowledged one is on the record, ends once, and is given to an agent once', async () => {
  const ids = idsOf('killed');
  const acknowledged = await sendAll(ids.slice(0, MESSAGES / 2));
  await until(() => held.length === MESSAGES / 2, { what: 'the dispatches' });
  const sending = sendAll(ids); // the first half again: they must come back as the same tasks
  await platform.kill9();
  mayAnswer = true;
  await platform.start();
  const all = await sending;
  for (const [messageId, id] of acknowledged) expect(all.get(messageId)).toBe(id);
  for (const dispatch of held.splice(0)) dispatch.result('done after all');
  await expectOnce(all);
}, 180_000);

test('SIGTERM under load: agents are asked to close and finish, no new one comes, and nothing is lost', async () => {
  mayAnswer = false;
  const acknowledged = await sendAll(idsOf('drained'));
  await until(() => held.length === MESSAGES, { what: 'the dispatches' });
  await registerAgent(client, { instanceId: 'other-1', agentType: 'other' });
  const stopped = platform.stop();
  await until(
    () =>
      openSocket(platform, 'other-1').then(
        () => false,
        () => true,
      ),
    { what: 'a refused socket' },
  );
  for (const dispatch of held.splice(0)) dispatch.result('finished');
  mayAnswer = true;
  await stopped; // rejects unless it ends with 0
  await platform.start();
  for (const id of acknowledged.values())
    expect(await client.message(id)).toMatchObject({ state: 'completed', assistant_output: 'finished' });
  await expectOnce(acknowledged);
  await agent.stop();
}, 180_000);
