import { slotOf } from '../../agents/agent-row.js';
import { isTerminal } from '../../contracts/api/messages.js';
import type { Tx } from '../../db/pool.js';
import { newId } from '../../runtime/ids.js';
import { countMoved, isOwn } from '../../sessions/session-end.js';
import { targetWaitedText } from '../accept/targets.js';
import type { MessageCore, MessageRef } from '../core.js';
import { boundedError, logEnd, type StoredError } from '../dispatch/message-end.js';
import { wakeForFreed } from '../dispatch/wake-queued.js';
import { lockRunning, openRequests } from '../read/read.js';
import type { DispatchDetails, InputRequestRow, MessageRow, RunningRow, SessionBinding } from '../read/rows.js';
import { type RouteWait, retryDelayMs, routeWait, type Step, stepError } from './step.js';

/** A message whose wait is over still gets a free agent, up to this multiple of the wait: the platform itself may have been slow. */
const LATE_FACTOR = 10;

/** The columns of a dispatch that a step needs. */
type StepDispatch = Pick<
  DispatchDetails,
  'dispatch_id' | 'instance_id' | 'agent_type' | 'mesh_id' | 'deployment_mode' | 'attempt'
> & { left_ms: number };

/** Fails a locked message. @param requestState the new state of its open input request */
async function failedStep(
  tx: Tx,
  row: RunningRow,
  error: StoredError,
  requestState: 'expired' | 'withdrawn' = 'withdrawn',
): Promise<Step> {
  const { code, message } = boundedError(error);
  const eventIds = [newId('evt'), newId('evt')];
  const values = [row.tenant_id, row.message_id, code, message, requestState, eventIds];
  await tx.query('SELECT fail_message($1, $2, $3, $4, $5, $6)', values);
  return { kind: 'done', state: 'failed', agent_type: row.agent_type, ...stepError(code, message) };
}

/** The step of a message that has ended; null when the tenant has no such message. */
async function doneStep(tx: Tx, ref: MessageRef): Promise<Step | null> {
  const [row] = await tx.query<Pick<MessageRow, 'state' | 'agent_type' | 'error_code' | 'error_message'>>(
    'SELECT state, agent_type, error_code, error_message FROM messages WHERE tenant_id = $1 AND message_id = $2',
    [ref.tenant_id, ref.message_id],
  );
  if (!row) return null;
  const { state, agent_type, error_code, error_message } = row;
  return { kind: 'done', state, agent_type, ...stepError(error_code, error_message) };
}

/**
 * The step of a canceled message: its agent gets CANCELED if the node that has the dispatch is alive. The running row stays, so that a
 * workflow that asks again after a crash gets the same step; `maintainTables` deletes it.
 */
async function canceledStep(tx: Tx, row: RunningRow): Promise<Step> {
  const [dispatch] = await tx.query<{ dispatch_id: string; mesh_id: string }>(
    `SELECT d.dispatch_id, d.mesh_id FROM dispatches d JOIN mesh_nodes n ON n.mesh_id = d.mesh_id
      WHERE d.tenant_id = $1 AND d.dispatch_id = $2 AND d.state = 'canceled'`,
    [row.tenant_id, row.current_dispatch_id],
  );
  const { agent_type } = row;
  return dispatch
    ? { kind: 'deliver_cancel', ...dispatch, agent_type }
    : { kind: 'done', state: 'canceled', agent_type };
}

async function inputStep(tx: Tx, row: RunningRow, request: InputRequestRow, now: Date): Promise<Step> {
  const leftMs = request.expires_at.getTime() - now.getTime();
  if (leftMs > 0) {
    return {
      kind: 'wait_input',
      request_id: request.request_id,
      agent_type: row.agent_type,
      request_kind: request.kind,
      source: request.source,
      since: request.requested_at.toISOString(),
      expires_at: request.expires_at.toISOString(),
      expires_ms: leftMs,
    };
  }
  return failedStep(tx, row, { code: 'APPROVAL_EXPIRED', message: 'Nobody answered in time.' }, 'expired');
}

async function unavailableStep(tx: Tx, row: RunningRow, session: SessionBinding, waitedMs: number): Promise<Step> {
  const message = await targetWaitedText(tx, row, session, waitedMs);
  return failedStep(tx, row, { code: 'TARGET_UNAVAILABLE', message });
}

async function waitStep(tx: Tx, row: RunningRow, { since, waitedMs, leftMs }: RouteWait): Promise<Step> {
  await tx.query('UPDATE running_messages SET unrouted_since = $3 WHERE tenant_id = $1 AND message_id = $2', [
    row.tenant_id,
    row.message_id,
    since,
  ]);
  return {
    kind: 'wait_agent',
    since: since.toISOString(),
    retry_ms: Math.min(retryDelayMs(waitedMs), leftMs),
    agent_type: row.want_agent_type ?? row.agent_type,
  };
}

/** Routes the message and opens its dispatch; null when no agent is free. */
async function openDispatch(
  tx: Tx,
  row: RunningRow,
  session: SessionBinding,
  onlyReachable: boolean,
): Promise<StepDispatch | null> {
  const [opened] = await tx.query<{ dispatch: StepDispatch; join_reason: string | null }>(
    'SELECT dispatch, join_reason FROM open_dispatch($1, $2, $3, $4)',
    [row.tenant_id, row.message_id, newId('dsp'), onlyReachable],
    'open_dispatch',
  );
  if (!opened) return null;
  const { dispatch, join_reason } = opened;
  if (join_reason !== null && isOwn(session, dispatch.agent_type))
    await countMoved(tx, { ...session, tenant_id: row.tenant_id }, dispatch.instance_id);
  return dispatch;
}

/** The message's dispatch that is open or sent. */
async function findOpen(tx: Tx, row: RunningRow): Promise<StepDispatch | null> {
  const [open] = await tx.query<StepDispatch & Record<string, unknown>>(
    `SELECT dispatch_id, instance_id, agent_type, mesh_id, deployment_mode, attempt,
            (extract(epoch FROM deadline_at - now()) * 1000)::integer AS left_ms
       FROM dispatches WHERE tenant_id = $1 AND dispatch_id = $2 AND state IN ('open', 'sent')`,
    [row.tenant_id, row.current_dispatch_id],
    'find_open_dispatch',
  );
  return open ?? null;
}

async function dispatchStep(tx: Tx, row: RunningRow, dispatch: StepDispatch): Promise<Step> {
  const { dispatch_id, instance_id, agent_type, mesh_id, deployment_mode, attempt, left_ms } = dispatch;
  const deadline_ms = Math.max(1, left_ms ?? (await deadlineOf(tx, row)));
  return { kind: 'dispatch', dispatch_id, instance_id, agent_type, mesh_id, deployment_mode, attempt, deadline_ms };
}

async function deadlineOf(tx: Tx, row: MessageRef): Promise<number> {
  const [message] = await tx.query<{ deadline_ms: number }>(
    'SELECT deadline_ms FROM messages WHERE tenant_id = $1 AND message_id = $2',
    [row.tenant_id, row.message_id],
  );
  return message?.deadline_ms ?? 0;
}

/** Decides the step of a locked message. */
async function decide(tx: Tx, row: RunningRow, session: SessionBinding, queueWaitMs: number, now: Date): Promise<Step> {
  if (isTerminal(row.state)) return canceledStep(tx, row);
  if (row.state === 'input-required') {
    const request = (await openRequests(tx, row.tenant_id, [row])).get(row.message_id);
    if (request) return inputStep(tx, row, request, now);
  }
  const open = row.current_dispatch_id === null ? null : await findOpen(tx, row);
  if (open) return dispatchStep(tx, row, open);
  const wait = await routeWait(tx, row, queueWaitMs, now);
  const { leftMs, waitedMs } = wait;
  if (waitedMs >= (waitedMs + leftMs) * LATE_FACTOR) return unavailableStep(tx, row, session, waitedMs);
  // A free agent gets the message also after its wait: the time may have passed in a queue, or with a node that died.
  const opened = await openDispatch(tx, row, session, leftMs <= 0);
  if (opened) return dispatchStep(tx, row, opened);
  return leftMs <= 0 ? unavailableStep(tx, row, session, waitedMs) : waitStep(tx, row, wait);
}

async function lockSession(tx: Tx, ref: MessageRef): Promise<SessionBinding | null> {
  const [session] = await tx.query<SessionBinding>(
    `SELECT explicit, instance_id, agent_type FROM sessions WHERE tenant_id = $1
        AND session_id = (SELECT session_id FROM messages WHERE tenant_id = $1 AND message_id = $2) FOR NO KEY UPDATE`,
    [ref.tenant_id, ref.message_id],
    'lock_session_of',
  );
  return session ?? null;
}

/** Locks a message and ends the lease of the process that has it; null when it has ended. Also notes that its workflow is running. */
async function takeOver(tx: Tx, ref: MessageRef): Promise<RunningRow | null> {
  const [row] = await tx.query<RunningRow & Record<string, unknown>>(
    `UPDATE running_messages SET supervised_at = now(), wake_requested_at = NULL, lease_epoch = lease_epoch + 1
      WHERE tenant_id = $1 AND message_id = $2 RETURNING *`,
    [ref.tenant_id, ref.message_id],
    'take_over',
  );
  return row ?? null;
}

/**
 * Decides the next step of a message's workflow. It opens a dispatch or fails the message where that is due. Postgres decides and the
 * workflow follows: a repeated call, after a crash for example, gives the same step.
 * @returns null when the tenant has no such message
 */
export async function nextStep(
  core: MessageCore,
  ref: MessageRef,
  now: () => Date = () => new Date(),
): Promise<Step | null> {
  const { step, ended } = await core.db.tenant(ref.tenant_id, async (tx) => {
    const session = await lockSession(tx, ref);
    const row = session && (await takeOver(tx, ref));
    if (!session || !row) return { step: await doneStep(tx, ref), ended: null };
    const decided = await decide(tx, row, session, core.limits.queueWaitMs, now());
    return {
      step: decided,
      ended: decided.kind === 'done' && decided.state === 'failed' ? { ...row, ...decided } : null,
    };
  });
  if (ended) {
    core.bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
    logEnd(core.log, { ...ended, dispatch_id: ended.current_dispatch_id, code: ended.error?.code });
  }
  return step;
}

/** Fails a message whose workflow an operator terminated or canceled in the Temporal UI. */
export async function failByOperator(core: MessageCore, ref: MessageRef, error: StoredError): Promise<void> {
  const ended = await core.db.tenant(ref.tenant_id, async (tx) => {
    const row = await lockRunning(tx, ref);
    if (!row || isTerminal(row.state)) return null;
    await failedStep(tx, row, error);
    return { row, woken: await wakeForFreed(tx, ref.tenant_id, slotOf(row)) };
  });
  if (!ended) return;
  const { row, woken } = ended;
  core.bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
  logEnd(core.log, { ...row, state: 'failed', dispatch_id: row.current_dispatch_id, code: error.code });
  for (const message of woken) core.workflowStarter.message(message);
}
