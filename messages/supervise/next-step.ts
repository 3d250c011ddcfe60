import { slotOf } from '../../agents/agent-row.js';
import { isTerminal } from '../../contracts/api/messages.js';
import type { Tx } from '../../db/pool.js';
import { isUndecided } from '../../policy/verdict.js';
import { newEventId } from '../../runtime/ids.js';
import { targetWaitedText } from '../accept/targets.js';
import type { MessageCore, MessageRef } from '../core.js';
import { boundedError, logEnd, type StoredError } from '../dispatch/message-end.js';
import { wakeForFreed } from '../dispatch/wake-queued.js';
import { deliverHeld } from '../input/held-output.js';
import { lockRunning, openRequests } from '../read/read.js';
import type { HeldOutput, MessageRow, RunningRow, SessionBinding } from '../read/rows.js';
import { inputStep } from './input-step.js';
import { type GatedRow, type KnownVerdicts, PolicyGate, type Stop, VerdictNeeded } from './policy-step.js';
import { dispatchStep, lockSession, openDispatch, type Queued, turnStep } from './route-step.js';
import { type RouteWait, retryDelayMs, routeWait, type Step, stepError } from './step.js';

/** A message whose wait is over still gets a free agent, up to this multiple of the wait: the platform itself may have been slow. */
const LATE_FACTOR = 10;

/** Of a message that is dispatched again after a loss (docs/durability.md#idempotent-skills). */
const OUT_OF_TIME = {
  code: 'DEADLINE_EXCEEDED',
  message: 'The agent was lost, and nobody did the message again in time.',
};
const EXPIRED = { code: 'APPROVAL_EXPIRED', message: 'Nobody answered in time.' };

/** Fails a locked message. @param requestState the new state of its open input request */
async function failedStep(
  tx: Tx,
  row: RunningRow,
  error: StoredError,
  requestState: 'expired' | 'withdrawn' = 'withdrawn',
): Promise<Step> {
  const { code, message } = boundedError(error);
  const values = [row.tenant_id, row.message_id, code, message, requestState, newEventId()];
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

/** The step of a message that a human's rejection has failed. The running row was there to wake its workflow, which knows now. */
async function rejectedStep(tx: Tx, row: RunningRow): Promise<Step | null> {
  await tx.query('DELETE FROM running_messages WHERE tenant_id = $1 AND message_id = $2', [
    row.tenant_id,
    row.message_id,
  ]);
  return doneStep(tx, row);
}

async function unavailableStep(tx: Tx, row: RunningRow, session: SessionBinding, waitedMs: number): Promise<Step> {
  const message = await targetWaitedText(tx, row, session, waitedMs);
  return failedStep(tx, row, { code: 'TARGET_UNAVAILABLE', message });
}

/** What a step is decided with. */
interface Context {
  tx: Tx;
  row: RunningRow;
  session: SessionBinding;
  gate: PolicyGate;
  now: Date;
}

async function waitStep(
  { tx, row, now }: Context,
  { since, waitedMs, leftMs }: RouteWait,
  { queue }: Queued,
  offlineMs: number,
): Promise<Step> {
  const repeatLeftMs = row.repeat_until ? row.repeat_until.getTime() - now.getTime() : leftMs;
  await tx.query(
    'UPDATE running_messages SET unrouted_since = $3, queue = $4 WHERE tenant_id = $1 AND message_id = $2',
    [row.tenant_id, row.message_id, since, queue],
  );
  return {
    kind: 'wait_agent',
    since: since.toISOString(),
    retry_ms: Math.min(retryDelayMs(waitedMs), leftMs, repeatLeftMs, offlineMs),
    agent_type: row.want_agent_type ?? row.agent_type,
  };
}

/** The step of a message that does not go on in this transaction: it fails, or waits for the human that was asked just now. */
async function stoppedStep({ tx, row, now }: Context, stop: Stop): Promise<Step> {
  if (stop.kind === 'failed') return failedStep(tx, row, stop.error);
  if (stop.kind === 'admitted') return waitForPolicies(1);
  const asked = { ...row, state: 'input-required' as const };
  const request = (await openRequests(tx, row.tenant_id, [asked])).get(row.message_id);
  if (!request) throw new Error('the request that was written just now is not open');
  // Its time may be over by a clock that is ahead of the database's.
  return (await inputStep(tx, row, request, now)) ?? failedStep(tx, row, EXPIRED, 'expired');
}

/** Routes the message and opens its dispatch, if the policies allow it and an agent is free. */
async function openAllowed(context: Context, onlyReachable: boolean): Promise<Step | Queued> {
  const { tx, row, session, gate } = context;
  if (gate.isConcerned) await tx.query('SAVEPOINT routed');
  const opened = await openDispatch(tx, row, session, onlyReachable);
  if ('queue' in opened) return opened;
  const refused = gate.isConcerned && (await gate.rulingOn(opened.agent));
  if (!refused) return opened.step;
  await tx.query('ROLLBACK TO SAVEPOINT routed');
  return stoppedStep(context, await gate.follow(refused, opened.agent));
}

/** Delivers what its agent has answered and a human has approved: the message ends, or waits for the answer to its agent's question. */
async function deliverStep(context: Context, held: HeldOutput, inputExpiryMs: number): Promise<Step> {
  const state = await deliverHeld(context.tx, context.row, held, inputExpiryMs);
  if (state === 'input-required') return stoppedStep(context, { kind: 'asked' });
  return { kind: 'done', state, agent_type: context.row.agent_type };
}

/** Decides the step of a locked message. */
async function decide(context: Context, queueWaitMs: number): Promise<Step> {
  const { tx, row, session, gate, now } = context;
  if (row.state === 'canceled') return canceledStep(tx, row);
  if (row.state === 'input-required') {
    const request = (await openRequests(tx, row.tenant_id, [row])).get(row.message_id);
    if (request) return (await inputStep(tx, row, request, now)) ?? failedStep(tx, row, EXPIRED, 'expired');
  }
  const current = row.current_dispatch_id && (await dispatchStep(tx, row, row.current_dispatch_id));
  if (current) return current;
  if (row.repeat_until && now >= row.repeat_until) return failedStep(tx, row, OUT_OF_TIME);
  const turn = row.ordered ? await turnStep(tx, row, now) : null;
  if (turn) return turn;
  const stop = await gate.admit(session);
  if (stop) return stoppedStep(context, stop);
  const wait = await routeWait(tx, row, queueWaitMs, now);
  const { leftMs, waitedMs } = wait;
  if (waitedMs >= (waitedMs + leftMs) * LATE_FACTOR) return unavailableStep(tx, row, session, waitedMs);
  // A free agent gets the message also after its wait: the time may have passed in a queue, or with a node that died.
  const opened = await openAllowed(context, leftMs <= 0);
  if ('kind' in opened) return opened;
  return leftMs <= 0 ? unavailableStep(tx, row, session, waitedMs) : waitStep(context, wait, opened, queueWaitMs);
}

/** Locks a message and ends the lease of the process that has it; null when it has ended. Also notes that its workflow is running. */
async function takeOver(tx: Tx, ref: MessageRef): Promise<GatedRow | null> {
  const [row] = await tx.query<GatedRow & Record<string, unknown>>(
    `WITH heard AS (UPDATE input_requests SET wake_requested_at = NULL
                     WHERE tenant_id = $1 AND message_id = $2 AND wake_requested_at IS NOT NULL)
     UPDATE running_messages SET supervised_at = now(), wake_requested_at = NULL, queue = NULL, lease_epoch = lease_epoch + 1
      WHERE tenant_id = $1 AND message_id = $2 RETURNING *`,
    [ref.tenant_id, ref.message_id],
    'take_over',
  );
  return row ?? null;
}

/** One transaction that decides the step. @throws VerdictNeeded where policies have to be asked first */
function stepBy(core: MessageCore, ref: MessageRef, known: KnownVerdicts, now: Date) {
  return core.db.tenant(ref.tenant_id, async (tx) => {
    const session = await lockSession(tx, ref);
    const row = await takeOver(tx, ref);
    if (!session || !row) return { row: null, step: await doneStep(tx, ref), hasChanged: false };
    if (row.state === 'failed') return { row: null, step: await rejectedStep(tx, row), hasChanged: false };
    const gate = new PolicyGate(core, tx, row, known);
    const context = { tx, row, session, gate, now };
    if (row.held_output && row.state === 'working')
      return { row, step: await deliverStep(context, row.held_output, core.limits.inputExpiryMs), hasChanged: true };
    return { row, step: await decide(context, core.limits.queueWaitMs), hasChanged: gate.hasAsked };
  });
}

/** The pause while the evaluators of a tenant's policies are busy. */
const EVALUATORS_BUSY_MS = 500;
/** No evaluator is asked later than this in one step: a local activity has 20 s, and a decision takes up to 15. */
const EVALUATION_STARTS_MS = 4_000;

function waitForPolicies(retry_ms: number): Step {
  return { kind: 'wait_policy', retry_ms, agent_type: null };
}

/** As `stepBy`, with the policies asked between transactions. */
async function decidedStep(core: MessageCore, ref: MessageRef, now: () => Date) {
  const known: KnownVerdicts = new Map();
  const startedAtMs = performance.now();
  for (;;) {
    try {
      return await stepBy(core, ref, known, now());
    } catch (error) {
      if (!(error instanceof VerdictNeeded)) throw error;
      const { key, request } = error;
      const isLate = performance.now() - startedAtMs > EVALUATION_STARTS_MS;
      if (isLate || core.policies.isBusy(ref.tenant_id))
        return { row: null, step: waitForPolicies(EVALUATORS_BUSY_MS), hasChanged: false };
      const verdict = await core.policies.decide(ref.tenant_id, request);
      if (isUndecided(verdict)) return { row: null, step: waitForPolicies(EVALUATORS_BUSY_MS), hasChanged: false };
      known.set(key, verdict);
    }
  }
}

/**
 * Decides the next step of a message's workflow. It opens a dispatch or fails the message where that is due. Postgres decides and the
 * workflow follows: a repeated call, after a crash for example, gives the same step.
 * @returns null when the tenant has no such message
 */
export async function nextStep(core: MessageCore, ref: MessageRef, now = () => new Date()): Promise<Step | null> {
  const { row, step, hasChanged } = await decidedStep(core, ref, now);
  if (hasChanged) core.bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
  if (row && step?.kind === 'done' && step.state === 'failed') announceFailed(core, row, step.error?.code);
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
  announceFailed(core, ended.row, error.code);
  for (const message of ended.woken) core.workflowStarter.message(message);
}

/** After the commit: notifies streams and the log of a failed message. @param row as it was before */
function announceFailed(core: MessageCore, row: RunningRow, code: string | undefined): void {
  core.bus.publish(row.tenant_id, row.message_id, { kind: 'changed' });
  logEnd(core.log, { ...row, state: 'failed', dispatch_id: row.current_dispatch_id, code });
}
