import { isTerminal } from '../../contracts/message-states.js';
import type { MessageCore, MessageRef } from '../../messages/core.js';
import { decideDispatch } from '../../messages/dispatch/dispatch-policy.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import type { DispatchEnd, Dispatches, DispatchRef, OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { createQueues } from '../../messages/dispatch/queues.js';
import type { DispatchRunner } from '../../messages/runner/runner.js';
import { takeStep } from '../../messages/supervise/next-step.js';
import type { DoneStep, Step, WaitStep } from '../../messages/supervise/step.js';
import { newId } from '../../runtime/ids.js';

/** Messages that are taken before one in its queue. */
const BEFORE_MAX = 200;

/** Where a message stands after a step, and its dispatch if an agent has it. */
export interface Stepped {
  step: Step | null;
  open: OpenDispatch | null;
}

interface TakeOptions {
  /** The node of hosted agents. */
  meshId?: string;
  now?: () => Date;
  /** An agent that takes nothing for a while, because nothing could be sent to it. */
  paused?: string;
}

/** Agents with room take what waits in a queue, as their nodes would. @returns what they took */
async function takeFrom(
  core: MessageCore,
  queue: { tenant_id: string; queue: string },
  { meshId = 'mesh_1', paused }: TakeOptions,
): Promise<OpenDispatch[]> {
  const queues = createQueues(core);
  const { tenant_id } = queue;
  await core.policies.guardsOf(tenant_id);
  const as_open = core.policies.concerns(tenant_id, 'dispatch');
  const taken: OpenDispatch[] = [];
  for (const { instance_id, mesh_id } of await queues.agentsToFill(queue)) {
    if (instance_id === paused) continue;
    const [row] = await core.db.tenant(tenant_id, (tx) =>
      tx.query<{ epoch: number }>(
        'SELECT connection_epoch AS epoch FROM agents WHERE tenant_id = $1 AND instance_id = $2',
        [tenant_id, instance_id],
      ),
    );
    const by = { mesh_id: mesh_id ?? meshId, epoch: mesh_id === null ? null : Number(row?.epoch), as_open };
    taken.push(...(await queues.take({ tenant_id, instance_id }, by, [newId('dsp')])));
  }
  const dispatches = createDispatches(core);
  const decided = await Promise.all(taken.map((open) => (as_open ? decideDispatch(core, dispatches, open) : open)));
  return decided.filter((open) => open !== null);
}

/** Takes a message a step further, and has agents with room take it and what is before it in its queue. */
export async function stepAndTake(core: MessageCore, ref: MessageRef, options: TakeOptions = {}): Promise<Stepped> {
  const { tenant_id, message_id } = ref;
  const look = () => takeStep(core, { tenant_id, message_id }, 'process', options.now);
  let standing = await look();
  for (let taken = 0; standing.queue !== null && taken < BEFORE_MAX; taken += 1) {
    const got = await takeFrom(core, { tenant_id, queue: standing.queue }, options);
    standing = await look();
    if (got.length === 0) break;
  }
  const { step } = standing;
  return {
    step,
    open: step?.kind === 'waits' && step.waits_for === 'result' ? await currentDispatch(core, ref) : null,
  };
}

/** What a message waits for after a step (`result`: an agent has it), with that step, and its dispatch if there is one; `done` when it is over. */
export interface Look
  extends Partial<Omit<WaitStep, 'kind'>>,
    Partial<Pick<DoneStep, 'error'>>,
    Partial<Pick<OpenDispatch, 'dispatch_id' | 'instance_id' | 'mesh_id' | 'deadline_at'>> {
  kind: WaitStep['waits_for'] | 'done';
}

/** As `stepAndTake`, in one object; null where the tenant has no such message. */
export async function lookAt(core: MessageCore, ref: MessageRef, options: TakeOptions = {}): Promise<Look | null> {
  const { step, open } = await stepAndTake(core, ref, options);
  if (!step) return null;
  const { dispatch_id, instance_id, mesh_id, deadline_at } = open ?? {};
  const dispatch = { dispatch_id, instance_id, mesh_id, deadline_at };
  return { ...step, ...(open && dispatch), kind: step.kind === 'waits' ? step.waits_for : 'done' };
}

/** The dispatch of a message at its agent; null where none has it. */
async function currentDispatch(core: MessageCore, { tenant_id, message_id }: MessageRef): Promise<OpenDispatch | null> {
  const current = 'SELECT current_dispatch_id AS id FROM running_messages WHERE tenant_id = $1 AND message_id = $2';
  const [row] = await core.db.tenant(tenant_id, (tx) =>
    tx.query<{ id: string | null }>(current, [tenant_id, message_id]),
  );
  return row?.id ? createDispatches(core).find({ tenant_id, dispatch_id: row.id }) : null;
}

/** What became of a dispatch, without content. `closed`: the record says how; with `final`, the message ended with it in that state. */
export type DispatchReport =
  | { kind: 'closed'; final?: string; error?: { code: string; message: string } }
  | { kind: 'not_sent'; reason: string };

/** Has a node send a dispatch that is on the record as sent. A test that does not look at the end need not. */
export function runDispatch(
  runner: Pick<DispatchRunner, 'reserve' | 'send' | 'releaseReservation'>,
  dispatches: Pick<Dispatches, 'find'>,
  ref: DispatchRef,
): Promise<DispatchReport> {
  const run = async (): Promise<DispatchReport> => {
    const open = await dispatches.find(ref);
    if (!open) return { kind: 'closed' };
    runner.reserve(open.dispatch_id);
    const ended = runner.send(open);
    runner.releaseReservation(open.dispatch_id);
    return ended !== null ? reportOf(await ended) : { kind: 'not_sent', reason: 'NOT_REACHED_HERE' };
  };
  const report = run();
  report.catch(() => undefined);
  return report;
}

function reportOf({ state, message, reason = '' }: DispatchEnd): DispatchReport {
  if (state === 'not_sent') return { kind: 'not_sent', reason };
  if (!message || !isTerminal(message.state)) return { kind: 'closed' };
  const { state: final, error_code: code, error_message } = message;
  return { kind: 'closed', final, ...(code !== null && { error: { code, message: error_message ?? '' } }) };
}
