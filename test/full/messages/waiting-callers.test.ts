import { expect, test } from 'vitest';
import type { Db } from '../../../db/pool.js';
import { streamTask } from '../../../messages/stream/stream.js';
import { waitForTask } from '../../../messages/stream/wait-for-task.js';
import { callerOf, insertAgent, insertTenant, messageCore, textMessage } from '../../setup/core.js';
import { freshDatabase } from '../../setup/database.js';
import { createGateway } from '../../setup/gateway.js';
import { until } from '../../setup/until.js';

const database = await freshDatabase();
const tenant_id = await insertTenant(database);
await insertAgent(database, { tenant_id, instance_id: 'a' });

/** The same database, and how often the whole message was read, and looked at with others. */
function counted(db: Db): { db: Db; wholes: () => number; looks: () => number } {
  const count = { wholes: 0, looks: 0 };
  const call: Db['call'] = (...args) => {
    count.wholes += 1;
    return db.call(...args);
  };
  const system: Db['system'] = (work) => {
    count.looks += 1;
    return db.system(work);
  };
  return { db: { ...db, call, system }, wholes: () => count.wholes, looks: () => count.looks };
}

async function accept(): Promise<{ tenant_id: string; message_id: string }> {
  const gateway = createGateway(messageCore(database.db()));
  const message = textMessage();
  const { message_id } = await gateway.accept(callerOf(tenant_id), { message }, { method: 'message/send' });
  return { tenant_id, message_id };
}

/** Ends the message without a notice on the bus, as another process whose notice was lost. */
function endUnseen(messageId: string): Promise<unknown> {
  return database.query(
    `UPDATE messages SET state = 'completed', updated_at = now(), completed_at = now() WHERE message_id = $1`,
    [messageId],
  );
}

test('callers that wait read the state of a message, and the whole of it only when it has changed', async () => {
  const ref = await accept();
  const [call, stream] = [counted(database.db()), counted(database.db())];
  const signal = new AbortController().signal;
  const options = { blocking: true, until: Date.now() + 60_000, signal: () => signal };
  const clocks = { rereadMs: 100 };
  const task = waitForTask(messageCore(call.db, { clocks }), ref, options);
  const events = (async () => {
    const states: unknown[] = [];
    for await (const { event } of streamTask(messageCore(stream.db, { clocks }), ref, { signal }))
      if ('status' in event) states.push(event.status.state);
    return states;
  })();
  await until(() => call.looks() > 0 && stream.looks() > 0, { what: 'the first polls' });
  expect([call.wholes(), stream.wholes()]).toEqual([1, 1]);
  await endUnseen(ref.message_id);
  expect((await task).status.state).toBe('completed');
  expect((await events).at(-1)).toBe('completed');
  expect([call.wholes(), stream.wholes()]).toEqual([2, 2]);
});
