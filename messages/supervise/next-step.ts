import { slotOf } from '../../agents/agent-row.js';
import { isTerminal } from '../../contracts/messages.js';
import type { Tx } from '../../db/pool.js';
import { newId } from '../../runtime/ids.js';
import { countMoved, isOwn } from '../../sessions/session-end.js';
import { targetWaitedText } from '../accept/targets.js';
import type { MessageCore, MessageRef } from '../core.js';
import { logEnd } from '../dispatch/end-log.js';
import { closeDispatch, finishFailed, openDispatchOf, withdrawRequest } from '../dispatch/finish.js';
import { type Route, routeMessage, type SessionBinding } from '../dispatch/route.js';
import { callForFreed } from '../dispatch/wake-queued.js';
import { type MessageWithRequest, readMessage, withRequest } from '../read/read.js';
import type { DispatchRow, InputRequestRow, MessageRow } from '../read/rows.js';
import { type RouteWait, routeWait } from './route-wait.js';
import { retryDelayMs, type Step, stepError } from './step.js';

/** So many times the wait a message is still given to an agent that is free, when what took its time was the platform itself. */
const LATE_FACTOR = 10;

/** The step of a message that has ended. */
function doneStep(row: Pick<MessageRow, 'state' | 'agent_type' | 'error_code' | 'error_message'>): Step {
  const { state, agent_type, error_code, error_message } = row;
  return { kind: 'done', state, agent_type, ...stepError(error_code, error_message) };
}

/** Ends a locked message as failed. */
async function failedStep(tx: Tx, row: MessageRow, error: { code: string; message: string }): Promise<Step> {
  await finishFailed(tx, row, error);
  return doneStep({ ...row, state: 'failed', error_code: error.code, error_message: error.message });
}

async function afterEnd(tx: Tx, row: MessageRow): Promise<Step> {
  const done = doneStep(row);
  if (row.state !== 'canceled' || row.current_dispatch_id === null) return done;
  const [dispatch] = await tx.query<{ dispatch_id: string; mesh_id: string }>(
    `SELECT d.dispatch_id, d.mesh_id FROM dispatches d JOIN mesh_nodes n ON n.mesh_id = d.mesh_id
      WHERE d.tenant_id = $1 AND d.dispatch_id = $2 AND d.state = 'canceled'`,
    [row.tenant_id, row.current_dispatch_id],
  );
  return dispatch ? { kind: 'deliver_cancel', ...dispatch, agent_type: row.agent_type } : done;
}

async function awaitInput(tx: Tx, row: MessageRow, request: InputRequestRow, now: Date): Promise<Step> {
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
  await tx.query(
    `UPDATE input_requests SET state = 'expired', ended_at = now() WHERE tenant_id = $1 AND request_id = $2`,
    [row.tenant_id, request.request_id],
  );
  return failedStep(tx, row, { code: 'APPROVAL_EXPIRED', message: 'Nobody answered in time.' });
}

async function giveUp(tx: Tx, row: MessageRow, session: SessionBinding, waitedMs: number): Promise<Step> {
  const message = await targetWaitedText(tx, row, session, waitedMs);
  return failedStep(tx, row, { code: 'TARGET_UNAVAILABLE', message });
}

async function noAgent(tx: Tx, row: MessageRow, { since, waitedMs, leftMs }: RouteWait): Promise<Step> {
  await tx.query('UPDATE messages SET unrouted_since = $3 WHERE tenant_id = $1 AND message_id = $2', [
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

/** Binds the session where the route says so, and opens the dispatch: one statement. */
const OPEN = `
  WITH joined AS (
    INSERT INTO session_agents (tenant_id, session_id, agent_type, instance_id, join_reason)
    SELECT $1, $4, $6, $5, $12 WHERE $12::text IS NOT NULL
    ON CONFLICT (tenant_id, session_id, instance_id)
      DO UPDATE SET agent_type = excluded.agent_type, joined_at = excluded.joined_at, join_reason = excluded.join_reason),
  bound AS (
    UPDATE sessions SET instance_id = $5, agent_type = $6
     WHERE tenant_id = $1 AND session_id = $4 AND $12::text IS NOT NULL AND coalesce(agent_type, $6) = $6),
  taken AS (
    UPDATE messages SET current_dispatch_id = $3, attempts = attempts + 1, instance_id = $5, agent_type = $6, holds_slot = true,
      remote_task_id = CASE WHEN instance_id = $5 THEN remote_task_id END,
      remote_context_id = CASE WHEN instance_id = $5 THEN remote_context_id END
     WHERE tenant_id = $1 AND message_id = $2)
  INSERT INTO dispatches (tenant_id, dispatch_id, message_id, session_id, instance_id, agent_type, deployment_mode, mesh_id,
    epoch, attempt, state, skill_id)
  VALUES ($1, $3, $2, $4, $5, $6, $7, $8, $9, $10, 'open', $11) RETURNING *`;

async function openDispatch(tx: Tx, row: MessageRow, session: SessionBinding, route: Route): Promise<DispatchRow> {
  const { agent } = route;
  const [dispatch] = await tx.query<DispatchRow>(
    OPEN,
    [
      row.tenant_id,
      row.message_id,
      newId('dsp'),
      row.session_id,
      agent.instance_id,
      agent.agent_type,
      agent.deployment_mode,
      agent.mesh_id,
      agent.connection_epoch,
      row.attempts + 1,
      row.want_skill_id,
      route.join_reason,
    ],
    'open_dispatch',
  );
  if (!dispatch) throw new Error('the dispatch was not written');
  if (!session.explicit) return dispatch;
  if (route.join_reason !== null && isOwn(session, agent.agent_type)) {
    await countMoved(tx, { ...session, tenant_id: row.tenant_id }, agent.instance_id);
  }
  // Room was claimed for the session on its own agent: it is counted there again.
  await tx.query(
    `UPDATE messages SET suspends_session = false WHERE tenant_id = $1 AND session_id = $2 AND suspends_session
        AND EXISTS (SELECT 1 FROM sessions s WHERE s.tenant_id = $1 AND s.session_id = $2 AND s.instance_id = $3)`,
    [row.tenant_id, row.session_id, dispatch.instance_id],
  );
  return dispatch;
}

function dispatchStep(row: MessageRow, dispatch: DispatchRow, now: Date): Step {
  const leftMs = dispatch.deadline_at ? dispatch.deadline_at.getTime() - now.getTime() : row.deadline_ms;
  return {
    kind: 'dispatch',
    dispatch_id: dispatch.dispatch_id,
    instance_id: dispatch.instance_id,
    agent_type: dispatch.agent_type,
    mesh_id: dispatch.mesh_id,
    deployment_mode: dispatch.deployment_mode,
    attempt: dispatch.attempt,
    deadline_ms: Math.max(1, leftMs),
  };
}

async function decide(
  tx: Tx,
  found: MessageWithRequest,
  session: SessionBinding,
  queueWaitMs: number,
  now: Date,
): Promise<Step> {
  const { row, request } = found;
  if (isTerminal(row.state)) return afterEnd(tx, row);
  if (request) return awaitInput(tx, row, request, now);
  const open = await openDispatchOf(tx, row);
  if (open) return dispatchStep(row, open, now);
  const wait = await routeWait(tx, row, queueWaitMs, now);
  const { leftMs, waitedMs } = wait;
  if (waitedMs >= (waitedMs + leftMs) * LATE_FACTOR) return giveUp(tx, row, session, waitedMs);
  const route = await routeMessage(tx, row, session);
  // Time that went by in a queue or with a node that died is no reason to fail what an agent can take now.
  if (leftMs <= 0 && (!route || route.agent.unreachable)) return giveUp(tx, row, session, waitedMs);
  if (!route) return noAgent(tx, row, wait);
  return dispatchStep(row, await openDispatch(tx, row, session, route), now);
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

/** Locks and reads a message, and says that its workflow has it: whoever held a lease on it holds it no more. */
async function takeOver(tx: Tx, ref: MessageRef): Promise<MessageWithRequest | null> {
  const [row] = await tx.query<MessageRow & Record<string, unknown>>(
    `UPDATE messages SET supervised_at = now(), wake_requested_at = NULL, lease_epoch = lease_epoch + 1
      WHERE tenant_id = $1 AND message_id = $2 RETURNING *`,
    [ref.tenant_id, ref.message_id],
    'take_over',
  );
  return row ? withRequest(tx, row) : null;
}

/**
 * Looks at a message and decides what its workflow does next, opening a dispatch or ending the message where that is due. Postgres
 * decides and the workflow follows: asked again after any crash, it gives the same step. It also says that the workflow woke.
 * @returns null when the tenant has no such message
 */
export async function nextStep(
  core: MessageCore,
  ref: MessageRef,
  now: () => Date = () => new Date(),
): Promise<Step | null> {
  const [step, ended] = await core.db.tenant(ref.tenant_id, async (tx) => {
    const session = await lockSession(tx, ref);
    const found = session && (await takeOver(tx, ref));
    if (!session || !found) return [null, null];
    const next = await decide(tx, found, session, core.limits.queueWaitMs, now());
    return [next, next.kind === 'done' && !isTerminal(found.row.state) ? { ...found.row, ...next } : null];
  });
  if (ended) {
    core.bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
    logEnd(core.log, { ...ended, dispatch_id: ended.current_dispatch_id, code: ended.error?.code });
  }
  return step;
}

/** Ends a message whose workflow an operator terminated in the Temporal UI, or canceled there. */
export async function failByOperator(
  core: MessageCore,
  ref: MessageRef,
  error: { code: string; message: string },
): Promise<void> {
  const ended = await core.db.tenant(ref.tenant_id, async (tx) => {
    const found = await readMessage(tx, ref.tenant_id, ref.message_id, true);
    if (!found || isTerminal(found.row.state)) return null;
    const dispatch = await openDispatchOf(tx, found.row);
    if (dispatch) await closeDispatch(tx, found.row, dispatch, 'failed', error.code);
    await withdrawRequest(tx, found.row);
    await finishFailed(tx, found.row, error);
    return { row: found.row, called: await callForFreed(tx, ref.tenant_id, slotOf(found.row)) };
  });
  if (!ended) return;
  const { row, called } = ended;
  core.bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
  logEnd(core.log, { ...row, state: 'failed', dispatch_id: row.current_dispatch_id, code: error.code });
  for (const waiting of called) core.workflowStarter.message(waiting);
}
