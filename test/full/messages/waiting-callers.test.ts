import { expect, test } from 'vitest';
import type { Db } from '../../../db/pool.js';
import { streamTask } from '../../../messages/stream/stream.js';
import { waitForTask } from '../../../messages/stream/watch.js';
import { callerOf, insertAgent, insertTenant, messageCore, textMessage } from '../../setup/core.js';
import { freshDatabase } from '../../setup/database.js';
import { createGateway } from '../../setup/gateway.js';
import { until } from '../../setup/until.js';

const database = await freshDatabase();
const tenant_id = await insertTenant(database);
await insertAgent(database, { tenant_id, instance_id: 'a' });

/** The same database, and the names of the statements that were called. */
function counted(db: Db): { db: Db; called: (name: string) => number } {
  const names: string[] = [];
  const call: Db['call'] = (tenantId, name, ...rest) => {
    names.push(name);
    return db.call(tenantId, name, ...rest);
  };
  return { db: { ...db, call }, called: (name) => names.filter((one) => one === name).length };
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

const WHOLE = 'find_message';
const NARROW = 'find_message_state';

test('callers that wait read the state of a message, and the whole of it only when it has changed', async () => {
  const ref = await accept();
  const [call, stream] = [counted(database.db()), counted(database.db())];
  const signal = new AbortController().signal;
  const options = { blocking: true, until: Date.now() + 60_000, signal: () => signal };
  const clocks = { watchMs: 100 };
  const task = waitForTask(messageCore(call.db, { clocks }), ref, options, null);
  const events = (async () => {
    const states: unknown[] = [];
    for await (const { event } of streamTask(messageCore(stream.db, { clocks }), ref, { signal }))
      if ('status' in event) states.push(event.status.state);
    return states;
  })();
  await until(() => call.called(NARROW) > 0 && stream.called(NARROW) > 0, { what: 'the first polls' });
  expect([call.called(WHOLE), stream.called(WHOLE)]).toEqual([1, 1]);
  await endUnseen(ref.message_id);
  expect((await task).status.state).toBe('completed');
  expect((await events).at(-1)).toBe('completed');
  expect([call.called(WHOLE), stream.called(WHOLE)]).toEqual([2, 2]);
});
