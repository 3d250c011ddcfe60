import type { Db, Tx } from '../../db/pool.js';
import type { GuardFinding } from '../../policy/guards/guarded-content.js';
import { GUARD_TERMS } from '../../policy/verdict.js';
import { PlatformError } from '../../runtime/errors.js';
import { newEventId, newId } from '../../runtime/ids.js';
import { digestOf } from '../digest.js';
import type { AnswerOrFailure, EndingDispatch, Produced } from '../dispatch/dispatches.js';
import { outputAfter } from '../dispatch/open-dispatch.js';
import { readable } from '../read/readable.js';
import type { HeldOutput, RunningRow } from '../read/rows.js';
import { questionCall } from './agent-question.js';
import { inputRequestCall } from './ask.js';

const TITLE = 'The output of an agent waits for approval.';

/** The members of an answer that are kept until a human has decided. */
function heldOutput({ state, artifacts = [], status_message, input_request }: AnswerOrFailure): HeldOutput {
  return {
    state: state === 'input-required' ? state : 'completed',
    artifacts,
    ...(status_message && { status_message }),
    ...(input_request && { input_request }),
  };
}

/** An answer that a guard holds, as an `ask_call` (db/functions/input/ask_input.sql). The message keeps its former output; the agent's usage counts now. */
export function heldOutputCall(
  dispatch: EndingDispatch,
  result: AnswerOrFailure,
  { guard, reason, path }: GuardFinding,
  epoch: number | null,
) {
  const { tenant_id, message_id, dispatch_id, session_id, produced } = dispatch;
  const held = heldOutput(result);
  const request = inputRequestCall({
    request_id: newId('req'),
    kind: 'approval',
    source: 'guard',
    stage: 'output',
    title: TITLE,
    prompt: reason,
    action: 'output',
    guard,
    ...(path !== '' && { path }),
    terms: GUARD_TERMS,
    digest: digestOf(held),
  });
  return {
    ...{ tenant_id, message_id, dispatch_id, session_id, epoch },
    artifacts: produced.artifacts,
    usage: outputAfter(produced, { ...result, artifacts: [] })?.usage,
    remote_task_id: result.remote_task_id,
    remote_context_id: result.remote_context_id,
    held_output: JSON.stringify(held),
    request,
    decisions: result.decisions,
  };
}

const PRODUCED = 'SELECT artifacts, usage FROM messages WHERE tenant_id = $1 AND message_id = $2';

/**
 * Delivers held output that a human has approved. The caller holds the locks of session and message.
 * @param expiryMs how long a human may take to answer the agent's question
 * @returns the message's state afterwards
 */
export async function deliverHeld(
  tx: Tx,
  row: RunningRow,
  held: HeldOutput,
  expiryMs: number,
): Promise<HeldOutput['state']> {
  const { tenant_id, message_id } = row;
  const [found] = await tx.query<Produced>(PRODUCED, [tenant_id, message_id]);
  if (!found) throw new Error('a running message has no row');
  const produced = readable(found);
  if (held.state === 'input-required') {
    const call = questionCall({ ...row, produced }, held, null, expiryMs);
    await tx.query('SELECT ask_held_question($1)', [JSON.stringify(call)]);
  } else {
    const { artifacts, status_message } = outputAfter(produced, held) ?? { ...produced, status_message: null };
    const values = [JSON.stringify(artifacts), status_message && JSON.stringify(status_message), newEventId()];
    await tx.query('SELECT deliver_held_answer($1, $2, $3, $4, $5)', [tenant_id, message_id, ...values]);
  }
  return held.state;
}

const HELD = `
  SELECT r.held_output, q.request_id, q.digest FROM running_messages r
    JOIN input_requests q ON q.tenant_id = r.tenant_id AND q.message_id = r.message_id AND q.stage = 'output' AND q.state = 'pending'
   WHERE r.tenant_id = $1 AND r.message_id = $2 AND r.held_output IS NOT NULL`;

/** Held output, with the request that decides about it. */
export interface HeldRequest {
  held_output: HeldOutput;
  request_id: string;
  digest: string;
}

/** The held output of a message; null if none waits for a human. */
export async function findHeld(tx: Tx, tenantId: string, messageId: string): Promise<HeldRequest | null> {
  const [held] = await tx.query<HeldRequest>(HELD, [tenantId, messageId]);
  return held ?? null;
}

/** As `findHeld`, for those who may decide. @throws PlatformError NOT_FOUND where no output of the message is held */
export async function getHeldOutput(db: Db, tenantId: string, messageId: string): Promise<HeldRequest> {
  const held = await db.tenant(tenantId, (tx) => findHeld(tx, tenantId, messageId));
  if (!held) throw new PlatformError('NOT_FOUND', 'No output of a message of that message_id waits for approval.');
  return held;
}
