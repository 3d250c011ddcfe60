import { expect, test } from 'vitest';
import type { Caller } from '../../contracts/api/auth.js';
import type { MessageRef } from '../../messages/core.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import type { AnswerOrFailure } from '../../messages/dispatch/dispatches.js';
import { nextStep } from '../../messages/supervise/next-step.js';
import { newId } from '../../runtime/ids.js';
import { callerOf, insertAgent, insertTenant, messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { createGateway } from '../setup/gateway.js';

const database = await freshDatabase();
const core = messageCore(database.db());
const gateway = createGateway(core);
const dispatches = createDispatches(core);
const LOST: AnswerOrFailure = { state: 'failed', error: { code: 'AGENT_DISCONNECTED', message: 'gone' } };

/** A message to an agent that declares all its messages idempotent. */
async function accepted(): Promise<{ caller: Caller; ref: MessageRef }> {
  const caller = callerOf(await insertTenant(database));
  const extension = { uri: 'urn:agent-fleet:extensions:idempotent-skills', params: { skills: ['*'] } };
  await insertAgent(database, {
    tenant_id: caller.tenant_id,
    instance_id: 'a',
    public_url: 'http://192.0.2.1/',
    agent_card: { capabilities: { extensions: [extension] } },
  });
  const parts = [{ kind: 'text' as const, text: 'hello' }];
  const message = { kind: 'message' as const, messageId: newId('req'), role: 'user' as const, parts };
  const { message_id } = await gateway.accept(caller, { message }, { method: 'message/send' });
  return { caller, ref: { tenant_id: caller.tenant_id, message_id } };
}

/** Sends the message's next dispatch. */
async function sentDispatch(ref: MessageRef) {
  const step = await nextStep(core, ref);
  if (step?.kind !== 'dispatch') throw new Error(`no dispatch, but ${JSON.stringify(step)}`);
  const dispatch = { ...ref, dispatch_id: step.dispatch_id };
  const sent = await dispatches.markSent(dispatch, { mesh_id: 'mesh_1', epoch: 0 });
  if (!sent) throw new Error('not sent');
  return sent;
}

test('a message of an idempotent skill has ten dispatches at most, and they share its deadline', async () => {
  const { caller, ref } = await accepted();
  const deadlines = new Set<number | undefined>();
  for (let attempt = 1; attempt <= 10; attempt += 1) {
    const sent = await sentDispatch(ref);
    deadlines.add(sent.deadline_at?.getTime());
    await dispatches.end(sent, LOST, 0);
  }
  expect(await nextStep(core, ref)).toMatchObject({ kind: 'done', state: 'failed' });
  expect((await gateway.get(caller, ref.message_id)).error?.code).toBe('AGENT_DISCONNECTED');
  expect(deadlines.size).toBe(1);
});

test('a question to a human gives it its whole time again', async () => {
  const { caller, ref } = await accepted();
  const first = await sentDispatch(ref);
  await dispatches.end(first, LOST, 0);
  const second = await sentDispatch(ref);
  await dispatches.end(second, { state: 'input-required', artifacts: [], input_request: { title: 'Go on?' } }, 0);
  await gateway.resolve(caller, ref.message_id, { resolution: 'confirmed' });
  const third = await sentDispatch(ref);
  expect(second.deadline_at).toEqual(first.deadline_at);
  expect(third.deadline_at?.getTime()).toBeGreaterThan(first.deadline_at?.getTime() ?? Number.POSITIVE_INFINITY);
});

test('what is lost after its deadline is not repeated, and nobody is waited for beyond it', async () => {
  const late = await accepted();
  const lost = await sentDispatch(late.ref);
  await database.query("UPDATE dispatches SET deadline_at = now() - interval '1 s' WHERE message_id = $1", [
    late.ref.message_id,
  ]);
  await dispatches.end(lost, LOST, 0);
  expect((await gateway.get(late.caller, late.ref.message_id)).state).toBe('failed');

  const waiting = await accepted();
  await dispatches.end(await sentDispatch(waiting.ref), LOST, 0);
  await database.query('UPDATE agents SET status = $1', ['offline']);
  // By its wait alone it would look again in five seconds.
  await database.query(
    "UPDATE running_messages SET unrouted_since = now() - interval '20 s', repeat_until = now() + interval '4 s'",
  );
  const step = await nextStep(core, waiting.ref);
  expect(step?.kind === 'wait_agent' && step.retry_ms).toBeLessThanOrEqual(4_000);
  await database.query('UPDATE running_messages SET repeat_until = now()');
  expect(await nextStep(core, waiting.ref)).toMatchObject({ kind: 'done', state: 'failed' });
  expect((await gateway.get(waiting.caller, waiting.ref.message_id)).error?.code).toBe('DEADLINE_EXCEEDED');
});
