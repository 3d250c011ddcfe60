import { Client, Connection } from '@temporalio/client';
import { expect, inject, test } from 'vitest';
import { messageWorkflowId } from '../../../contracts/workflows.js';
import type { MessageRef } from '../../../messages/core.js';
import { takeStep } from '../../../messages/supervise/next-step.js';
import { TemporalLink } from '../../../messages/supervise/temporal-link.js';
import { WaitingWatch } from '../../../messages/supervise/waiting-watch.js';
import { newId } from '../../../runtime/ids.js';
import { createLogger } from '../../../runtime/logger.js';
import { serveApi } from '../../api/served-api.js';
import { cleanUp } from '../../setup/clean-up.js';
import { until } from '../../setup/until.js';
import { approvalsFixture } from './approvals-fixture.js';

const api = await serveApi();
const { held, ref, step } = await approvalsFixture(api);
const address = inject('temporalAddress');
const temporal = new TemporalLink(
  { options: { address }, namespace: 'default', dataConverter: {} },
  createLogger({ level: 'silent' }),
);
await temporal.prepare();
cleanUp(() => temporal.close());
const connection = await Connection.connect({ address });
cleanUp(() => connection.close());
const { workflow } = new Client({ connection });

/** The ids of all messages whose workflows have ended since this time. */
async function endedSince(since: Date, pageSize?: number): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of temporal.endedMessages(since, pageSize)) {
    if (pageSize !== undefined) expect(page.length).toBeLessThanOrEqual(pageSize);
    ids.push(...page.map(({ message_id }) => message_id));
  }
  return ids;
}

const stateOf = async (id: string) => (await api.client.message(id)).state;

/** The workflow of a message that waits. Nobody works on its queue: it stays as it is until it is terminated. */
async function startWorkflow(id: string) {
  await takeStep(api.core, ref(id), 'workflow');
  const { session_id } = await api.client.message(id);
  await temporal.wakeMessage({ ...ref(id), session_id });
  return workflow.getHandle(messageWorkflowId(ref(id)));
}

test('a message whose time has passed unnoticed is looked at; the others are left alone', async () => {
  const [overdue, reminded, waiting] = [await held(), await held({ reminder_seconds: 60 }), await held()];
  for (const id of [overdue, reminded, waiting]) await step(id);
  for (const [column, id] of [
    ['expires_at', overdue],
    ['remind_at', reminded],
  ])
    await api.database.query(`UPDATE input_requests SET ${column} = now() - interval '1 min' WHERE message_id = $1`, [
      id,
    ]);
  const looked: string[] = [];
  const advance = ({ message_id }: MessageRef) => void looked.push(message_id);
  await new WaitingWatch({ ...api.core, advance }, temporal).look();
  expect(looked.sort()).toEqual([overdue, reminded].sort());
});

test('a message whose workflow an operator ended while it waited fails; one that only waits does not', async () => {
  const [ended, waiting] = [await held(), await held()];
  const [handle, other] = [await startWorkflow(ended), await startWorkflow(waiting)];
  await handle.terminate();
  const since = new Date(Date.now() - 60_000);
  await until(async () => (await endedSince(since)).includes(ended));
  await new WaitingWatch(api.core, temporal).restoreEnded();
  expect(await api.client.message(ended)).toMatchObject({ state: 'failed', error: { code: 'INTERNAL' } });
  expect(await stateOf(waiting)).toBe('input-required');
  await other.terminate();
});

test('one that cannot be restored holds up no other, and is tried again', async () => {
  const ids = [await held(), await held(), await held()];
  const bad = ids[2] as string;
  for (const id of ids) await (await startWorkflow(id)).terminate();
  const since = new Date(Date.now() - 60_000);
  await until(async () => {
    const found = await endedSince(since);
    return ids.every((id) => found.includes(id));
  });
  expect(await endedSince(since, 1)).toEqual(expect.arrayContaining(ids));
  // A page has one message: the watch looks at all pages.
  const paged: ConstructorParameters<typeof WaitingWatch>[1] = {
    endedMessages: (from) => temporal.endedMessages(from, 1),
    fateOfMessage: (of) => temporal.fateOfMessage(of),
    wakeMessage: (input) => temporal.wakeMessage(input),
  };
  const watch = new WaitingWatch(api.core, paged);
  await api.database.query(
    `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`,
  );
  await api.database.query(
    `CREATE TRIGGER refuse BEFORE UPDATE ON messages FOR EACH ROW WHEN (OLD.message_id = '${bad}') EXECUTE FUNCTION refuse()`,
  );
  await expect(watch.restoreEnded()).rejects.toThrow('1 messages could not be restored');
  const states = () => Promise.all(ids.map(stateOf));
  expect(await states()).toEqual(['failed', 'failed', 'input-required']);
  await api.database.query('DROP TRIGGER refuse ON messages');
  await watch.restoreEnded();
  expect(await states()).toEqual(['failed', 'failed', 'failed']);
});

test('workflows that ended by themselves, and those of before, are none that operators ended', async () => {
  expect(await endedSince(new Date(Date.now() + 3_600_000))).toEqual([]);
  await expect(temporal.fateOfMessage({ tenant_id: api.tenantId, message_id: newId('msg') })).resolves.toBe('missing');
});
