import { expect, test } from 'vitest';
import { sessionDeps } from '../../messages/cancel.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import { nextStep } from '../../messages/supervise/next-step.js';
import { newId } from '../../runtime/ids.js';
import { createSessions } from '../../sessions/sessions.js';
import { callerOf, insertAgent, insertTenant, messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { createGateway } from '../setup/gateway.js';

const database = await freshDatabase();
const called: string[] = [];
const core = messageCore(database.db(), {
  workflowStarter: { message: ({ message_id }) => called.push(message_id), session: () => undefined },
});
const gateway = createGateway(core);
const dispatches = createDispatches(core);

test('the end of a message marks the next of its ordered session, so that it is woken even if the process dies', async () => {
  const caller = callerOf(await insertTenant(database));
  const { tenant_id } = caller;
  await insertAgent(database, { tenant_id, instance_id: 'a', public_url: 'http://192.0.2.1/' });
  const opened = await createSessions(sessionDeps(core)).init(caller, {
    agent_type: 'worker',
    idle_timeout_seconds: 0,
    ordered: true,
  });
  const put = async () => {
    const parts = [{ kind: 'text' as const, text: 'hello' }];
    const contextId = opened.session.session_id;
    const message = { kind: 'message' as const, messageId: newId('req'), role: 'user' as const, parts, contextId };
    const { message_id } = await gateway.accept(caller, { message }, { method: 'message/send' });
    return { tenant_id, message_id };
  };
  const messages = [await put(), await put(), await put()];
  const marked = async () => {
    const rows = await database.query<{ message_id: string }>(
      'SELECT message_id FROM running_messages WHERE wake_requested_at IS NOT NULL ORDER BY message_id',
    );
    return rows.map(({ message_id }) => messages.findIndex((message) => message.message_id === message_id));
  };
  const steps = [];
  for (const message of messages) steps.push((await nextStep(core, message))?.kind); // their workflows look, and wait
  expect(steps).toEqual(['dispatch', 'wait_agent', 'wait_agent']);
  expect(await marked()).toEqual([]);

  const [first, second] = messages;
  const step = first && (await nextStep(core, first));
  if (!first || !second || step?.kind !== 'dispatch') throw new Error('the first message has no dispatch');
  const sent = await dispatches.markSent({ ...first, dispatch_id: step.dispatch_id }, { mesh_id: 'mesh_1', epoch: 0 });
  if (!sent) throw new Error('not sent');
  called.length = 0;
  await dispatches.end(sent, { state: 'completed', artifacts: [] }, 0);
  expect(called).toEqual([second.message_id]);
  expect(await marked()).toEqual([1]);
  expect((await nextStep(core, second))?.kind).toBe('dispatch');
  expect(await marked()).toEqual([]);
});
