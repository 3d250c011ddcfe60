import { beforeEach, expect, test } from 'vitest';
import type { Caller } from '../../contracts/api/auth.js';
import { LIMITS } from '../../contracts/limits.js';
import type { MessageRef } from '../../messages/core.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import { nextStep } from '../../messages/supervise/next-step.js';
import type { Step } from '../../messages/supervise/step.js';
import { newId } from '../../runtime/ids.js';
import { callerOf, insertAgent, insertTenant, messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { createGateway } from '../setup/gateway.js';

const QUEUE_WAIT_MS = 30_000;
const database = await freshDatabase();
const core = messageCore(database.db(), { limits: { queueWaitMs: QUEUE_WAIT_MS } });
let caller: Caller;
beforeEach(async () => {
  caller = callerOf(await insertTenant(database));
  const agent = { instance_id: 'x-1', agent_type: 'x', public_url: 'http://192.0.2.1/' };
  await insertAgent(database, { tenant_id: caller.tenant_id, ...agent });
});

async function send(): Promise<MessageRef> {
  const parts = [{ kind: 'text' as const, text: 'hello' }];
  const message = { kind: 'message' as const, messageId: newId('req'), role: 'user' as const, parts };
  const params = { message, metadata: { agent_type: 'x' } };
  const { message_id } = await createGateway(core).accept(caller, params, { method: 'message/send' });
  return { tenant_id: caller.tenant_id, message_id };
}

const look = (ref: MessageRef, afterMs = 0): Promise<Step | null> =>
  nextStep(core, ref, () => new Date(Date.now() + afterMs));

/** A dispatch is opened and given back. */
async function release(ref: MessageRef, reason: string): Promise<void> {
  const step = await look(ref);
  if (step?.kind !== 'dispatch') throw new Error(`no dispatch: ${step?.kind}`);
  await createDispatches(core).release({ ...ref, dispatch_id: step.dispatch_id }, reason);
}

test.each([
  ['a node that died', 'OWNER_LOST', 2 * QUEUE_WAIT_MS, 'dispatch'],
  ['an agent that was not reached', 'CONNECT_FAILED', QUEUE_WAIT_MS / 2, 'dispatch'],
  ['an agent that was not reached for too long', 'CONNECT_FAILED', 2 * QUEUE_WAIT_MS, 'done'],
  ['nodes that die again and again', 'OWNER_LOST', 11 * QUEUE_WAIT_MS, 'done'],
])('while an agent is free, a message that comes back from %s is routed or given up', async (_, reason, ms, kind) => {
  const ref = await send();
  await release(ref, reason);
  expect((await look(ref, ms))?.kind).toBe(kind);
});

test('without an agent a message is given up after the wait', async () => {
  const ref = await send();
  await database.query(`UPDATE agents SET status = 'offline' WHERE tenant_id = $1`, [caller.tenant_id]);
  expect((await look(ref))?.kind).toBe('wait_agent');
  expect((await look(ref, QUEUE_WAIT_MS / 2))?.kind).toBe('wait_agent');
  expect(await look(ref, 2 * QUEUE_WAIT_MS)).toMatchObject({ kind: 'done', state: 'failed' });
});

test('until it is sent a dispatch has the whole time of its message, afterwards what is left of it', async () => {
  const ref = await send();
  const opened = await look(ref);
  if (opened?.kind !== 'dispatch') throw new Error(`no dispatch: ${opened?.kind}`);
  expect(opened.deadline_ms).toBe(LIMITS.deadlineMsDefault);
  expect(await look(ref)).toEqual(opened);
  const dispatch = { ...ref, dispatch_id: opened.dispatch_id };
  expect(await createDispatches(core).markSent(dispatch, { mesh_id: 'mesh_1', epoch: 0 })).not.toBeNull();
  await database.query("UPDATE dispatches SET deadline_at = now() + interval '90 s' WHERE dispatch_id = $1", [
    opened.dispatch_id,
  ]);
  const sent = await look(ref);
  if (sent?.kind !== 'dispatch') throw new Error(`no dispatch: ${sent?.kind}`);
  expect(sent.deadline_ms).toBeLessThanOrEqual(90_000);
  expect(sent.deadline_ms).toBeGreaterThan(60_000);
});
