import { beforeEach, expect, test } from 'vitest';
import { createQueues } from '../../messages/dispatch/queues.js';
import { findMessage } from '../../messages/read/read.js';
import { taskOf } from '../../messages/read/task.js';
import { waitForTask } from '../../messages/stream/wait-for-task.js';
import { newId } from '../../runtime/ids.js';
import { textMessage } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { MESH, RecordFixture } from '../setup/record-fixture.js';
import { until } from '../setup/until.js';

const database = await freshDatabase();
const reads: string[] = [];
const db = database.db();
const fixture = new RecordFixture(database, {
  db: {
    ...db,
    call: (tenantId, name, ...rest) => {
      if (name.startsWith('find_message')) reads.push(name);
      return db.call(tenantId, name, ...rest);
    },
  },
});
const queues = createQueues(fixture.core);
beforeEach(async () => {
  await fixture.reset();
  reads.length = 0;
  await fixture.agent('a');
});

/** A queued message, its caller who waits, and the dispatch of its agent. */
async function taken(knowsRow = true) {
  const wish = { message: textMessage('two and two?'), metadata: { agent_type: 'worker' } };
  const { message_id, writtenRow } = await fixture.gateway.accept(fixture.caller, wish, { method: 'message/send' });
  const ref = { tenant_id: fixture.tenantId, message_id };
  const { signal } = new AbortController();
  const options = { blocking: true, until: Date.now() + 60_000, signal: () => signal };
  const task = waitForTask(fixture.core, ref, options, knowsRow ? writtenRow : null);
  const by = { mesh_id: MESH, epoch: 1, as_open: false };
  const [open] = await queues.take({ tenant_id: fixture.tenantId, instance_id: 'a' }, by, [newId('dsp')]);
  if (!open) throw new Error('nothing was taken');
  return { open, task };
}

const answer = {
  state: 'completed' as const,
  artifacts: [{ artifactId: 'answer', parts: [{ kind: 'text' as const, text: 'four' }] }],
  usage: { input_tokens: 2, output_tokens: 1 },
};
const failure = { state: 'failed' as const, error: { code: 'HANDLER_ERROR', message: 'no numbers today' } };

test.each([
  ['completed', answer],
  ['failed', failure],
])(
  'a caller whose message was queued gets the end that its process has written, without a read: %s',
  async (state, result) => {
    const { open, task } = await taken();
    await fixture.dispatches.end(open, result, 1);
    const shown = await task;
    expect(reads).toEqual([]);
    expect(shown.status.state).toBe(state);
    const found = await findMessage(fixture.core.db, fixture.tenantId, open.message_id);
    expect(found && taskOf(found.row, found.request)).toEqual(shown);
  },
);

test('a caller whose message has been with its agent for long reads it once', async () => {
  const { open, task } = await taken(false);
  await until(() => reads.length === 1);
  await fixture.dispatches.end(open, answer, 1);
  const shown = await task;
  expect(reads).toEqual(['find_message']);
  const found = await findMessage(fixture.core.db, fixture.tenantId, open.message_id);
  expect(found && taskOf(found.row, found.request)).toEqual(shown);
});

test('what follows a question is read, because it is more than the end', async () => {
  const { open, task } = await taken();
  await fixture.dispatches.end({ ...open, is_first: false }, answer, 1);
  expect((await task).status.state).toBe('completed');
  expect(reads).toEqual(['find_message']);
});
