import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { expect, inject, test } from 'vitest';
import { createRecordActivities } from '../../../activities/record.js';
import { type MessageInput, messageWorkflowId } from '../../../contracts/workflows.js';
import { openDb } from '../../../db/pool.js';
import { stepSlots } from '../../../platform/roles/workers.js';
import { newId } from '../../../runtime/ids.js';
import { createLogger } from '../../../runtime/logger.js';
import { createDataConverter } from '../../../runtime/payload-codec.js';
import { cleanUp } from '../../setup/clean-up.js';
import { messageCore, TEST_SECRETS } from '../../setup/core.js';
import { freshDatabase } from '../../setup/database.js';
import { useUpTurns } from '../../setup/used-up-turns.js';
import { runWorker } from '../../setup/worker.js';

const SLOTS = 20;
/** Of the busy tenant. */
const WORKFLOWS = 2 * SLOTS;

const database = await freshDatabase();
// Who waits for a turn waits as long as the test takes.
const db = openDb({ url: database.url, turnWaitMs: 600_000, log: createLogger({ level: 'silent' }) });
const core = messageCore(db);
const taskQueue = `steps-${newId('msg')}`;
const dataConverter = createDataConverter(TEST_SECRETS, { FLEET_TEMPORAL_ENCRYPTION: 'on' });
cleanUp(() => db.close());
const address = inject('temporalAddress');
const client = new Client({ connection: await Connection.connect({ address }), dataConverter });
cleanUp(() => client.connection.close());
const connection = await NativeConnection.connect({ address });
const activities = createRecordActivities(core);
await runWorker({ connection, taskQueue, dataConverter, activities, ...stepSlots(SLOTS) });

function start(tenantId: string) {
  const input: MessageInput = { tenant_id: tenantId, message_id: newId('msg'), session_id: newId('ses') };
  const options = { taskQueue, workflowId: messageWorkflowId(input), args: [input] };
  return client.workflow.start('message', options);
}

test('steps of a tenant whose turns at the database are used up hold up no other workflow', async () => {
  const [busy, other] = [newId('ten'), newId('ten')];
  const used = await useUpTurns(db, busy);
  const waiting = await Promise.all(Array.from({ length: WORKFLOWS }, () => start(busy)));
  // No such message is on the record, which is what the step says.
  for (let count = 0; count < 3; count += 1) expect(await (await start(other)).result()).toEqual({ state: 'unknown' });
  expect(db.counts().turns).toMatchObject({ refused: 0 });
  expect(db.counts().turns.waiting).toBeGreaterThan(0);
  await used.release();
  for (const workflow of waiting) expect(await workflow.result()).toEqual({ state: 'unknown' });
});

test('with encryption, the history of a workflow holds no input and no result that Temporal could read', async () => {
  const workflow = await start(newId('ten'));
  expect(await workflow.result()).toEqual({ state: 'unknown' });
  const { events } = await workflow.fetchHistory();
  const encodings = new Set<string>();
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const { metadata } = value as { metadata?: { encoding?: Uint8Array } };
    if (metadata?.encoding) encodings.add(Buffer.from(metadata.encoding).toString());
    else for (const member of Object.values(value)) collect(member);
  };
  for (const {
    workflowExecutionStartedEventAttributes: started,
    workflowExecutionCompletedEventAttributes: ended,
  } of events ?? [])
    for (const payloads of [started?.input, ended?.result]) collect(payloads);
  expect([...encodings]).toEqual(['binary/encrypted']);
});
