import { isTerminal } from '../../contracts/message-states.js';
import type { Tx } from '../../db/pool.js';
import { isUndecided } from '../../policy/verdict.js';
import type { MessageCore, MessageRef } from '../core.js';
import type { StoredError } from '../dispatch/message-end.js';
import { deliverHeld } from '../input/held-output.js';
import { lockRunning, pendingRequest } from '../read/read.js';
import type { HeldOutput, InputRequestRow, MessageRow, RunningRow, SessionBinding } from '../read/rows.js';
import { announceFailed, failMessage } from './failed-step.js';
import { inputStep } from './input-step.js';
import { type GatedRow, type KnownVerdicts, PolicyGate, type Stop, VerdictNeeded } from './policy-step.js';
import { type LockedMessage, type QueuedStep, roomStep } from './room-step.js';
import { type Step, stepError, type WaitStep, waits } from './step.js';

/** Who looks at a message: its workflow, or a process that takes it a step further. */
export type Looker = 'workflow' | 'process';

/** The error of a message that was to be dispatched again after a loss (docs/durability.md#idempotent-skills). */
const OUT_OF_TIME = {
  code: 'DEADLINE_EXCEEDED',
  message: 'The agent was lost, and nobody did the message again in time.',
};
const EXPIRED = { code: 'APPROVAL_EXPIRED', message: 'Nobody answered in time.' };

/** A message fails after so many errors while a dispatch of it was opened. */
const FAILED_OPENINGS_MAX = 10;
const NOT_OPENED = { code: 'INTERNAL', message: 'The platform failed to give the message to an agent.' };

/** The step of a message that has ended; null when the tenant has no such message. */
async function doneStep(tx: Tx, ref: MessageRef): Promise<Step | null> {
  const [row] = await tx.query<Pick<MessageRow, 'state' | 'agent_type' | 'error_code'>>(
    'SELECT state, agent_type, error_code FROM messages WHERE tenant_id = $1 AND message_id = $2',
    [ref.tenant_id, ref.message_id],
  );
  if (!row) return null;
  const { state, agent_type, error_code } = row;
  return { kind: 'done', state, agent_type, ...stepError(error_code) };
}

/** What the functions that decide a step need. */
interface Context extends LockedMessage {
  gate: PolicyGate;
}

/** The step of a message that an agent has; null for any other. */
async function dispatchStep(tx: Tx, row: RunningRow): Promise<WaitStep | null> {
  if (row.current_dispatch_id === null) return null;
  const [dispatch] = await tx.query<{
    instance_id: string;
    attempt: number;
    sent_at: Date | null;
    deadline_at: Date | null;
  }>(
    `SELECT instance_id, attempt, sent_at, deadline_at FROM dispatches
      WHERE tenant_id = $1 AND dispatch_id = $2 AND state IN ('open', 'sent')`,
    [row.tenant_id, row.current_dispatch_id],
    'find_open_dispatch',
  );
  if (!dispatch) return null;
  const { instance_id, attempt, sent_at, deadline_at } = dispatch;
  const since = sent_at ? ` since ${sent_at.toISOString()}` : '';
  const until = deadline_at ? `, until ${deadline_at.toISOString()}` : '';
  return waits(
    row,
    'result',
    `Agent \`${instance_id}\` (${row.agent_type}) has it${since}${until}, attempt ${attempt}.`,
  );
}

/** If nobody wakes the message when its turn has come, a sweeper looks at it. */
const SWEEP_LATER = `
  UPDATE running_messages SET wake_requested_at = sweep_later() WHERE tenant_id = $1 AND message_id = $2`;
/** Waits for a transaction that is ending the message. No row: it has ended. */
const STILL_RUNS = 'SELECT 1 FROM running_messages WHERE tenant_id = $1 AND message_id = $2 FOR KEY SHARE';

/**
 * The step of a message in an ordered session that waits for another message of it; null when it is its turn. The end of the other message wakes this one, but
 * skips it while it is locked here. So this waits for an end that is under way.
 */
async function turnStep(tx: Tx, row: RunningRow): Promise<WaitStep | null> {
  for (;;) {
    const [next] = await tx.query<{ message_id: string }>(
      "SELECT next_in_order($1, $2) #>> '{0,message_id}' AS message_id",
      [row.tenant_id, row.session_id],
      'next_in_order',
    );
    if (!next || next.message_id === row.message_id) return null;
    const running = await tx.query(STILL_RUNS, [row.tenant_id, next.message_id], 'still_runs');
    if (running.length === 0) continue;
    await tx.query(SWEEP_LATER, [row.tenant_id, row.message_id], 'sweep_later');
    return waits(row, 'turn', `Waits for its turn in its session since ${row.created_at.toISOString()}.`);
  }
}

/** The step of a message whose request is open: it waits for the human, or fails once the time is up. */
async function personStep({ tx, now }: Context, row: RunningRow, request: InputRequestRow): Promise<Step> {
  return (await inputStep(tx, row, request, now)) ?? failMessage(tx, row, EXPIRED, 'expired');
}

/** The step of a message that does not go on in this transaction: it fails, or waits for the human that was asked just now. */
async function stoppedStep(context: Context, stop: Stop): Promise<Step> {
  const { tx, row } = context;
  if (stop.kind === 'failed') return failMessage(tx, row, stop.error);
  const asked = { ...row, state: 'input-required' as const };
  const request = await pendingRequest(tx, row.tenant_id, asked);
  if (!request) throw new Error('the request that was written just now is not open');
  return personStep(context, asked, request); // it may have expired by a clock ahead of the database's
}

/** Delivers held output that a human has approved: the message ends, or waits for the answer to its agent's question. */
async function deliverStep(context: Context, held: HeldOutput): Promise<Step> {
  const state = await deliverHeld(context.tx, context.row, held, context.limits.inputExpiryMs);
  if (state === 'input-required') return stoppedStep(context, { kind: 'asked' });
  return { kind: 'done', state, agent_type: context.row.agent_type };
}

/** The step of a message that does not wait for an agent's room; null: it joins a queue. */
async function stepBeforeQueue(context: Context): Promise<Step | null> {
  const { tx, row, session, gate, now } = context;
  const request = await pendingRequest(tx, row.tenant_id, row);
  if (request) return personStep(context, row, request);
  const current = await dispatchStep(tx, row);
  if (current) return current;
  if (row.repeat_until && now >= row.repeat_until) return failMessage(tx, row, OUT_OF_TIME);
  if (row.failed_openings >= FAILED_OPENINGS_MAX) return failMessage(tx, row, NOT_OPENED);
  const turn = row.ordered ? await turnStep(tx, row) : null;
  if (turn) return turn;
  const stop = await gate.admit(session);
  return stop && stoppedStep(context, stop);
}

/** Decides the step of a locked message. `waiting` in messages/read/waits.ts computes the same for callers, from the row. */
async function stepOf(context: Context): Promise<QueuedStep> {
  const step = await stepBeforeQueue(context);
  return step ? { step, queue: null } : roomStep(context);
}

/** Locks the session of a message, before the message; null when the message has ended or does not exist. */
async function lockSession(tx: Tx, ref: MessageRef): Promise<SessionBinding | null> {
  const [session] = await tx.query<SessionBinding>(
    `SELECT explicit, reserves, instance_id, agent_type FROM sessions WHERE tenant_id = $1
        AND session_id = (SELECT session_id FROM running_messages WHERE tenant_id = $1 AND message_id = $2) FOR NO KEY UPDATE`,
    [ref.tenant_id, ref.message_id],
    'lock_session_of',
  );
  return session ?? null;
}

const WORKFLOW_LOOKS = `
  UPDATE input_requests SET wake_requested_at = NULL WHERE tenant_id = $1 AND message_id = $2 AND wake_requested_at IS NOT NULL`;

/**
 * Locks a message; null when it has ended. While it waits for a human, only its workflow clears `wake_requested_at`, because only the workflow keeps the times
 * of the request.
 */
async function lockRow(tx: Tx, { tenant_id, message_id }: MessageRef, by: Looker): Promise<GatedRow | null> {
  if (by === 'workflow') await tx.query(WORKFLOW_LOOKS, [tenant_id, message_id], 'workflow_heard');
  const [row] = await tx.query<GatedRow>(
    `UPDATE running_messages SET supervised_at = CASE WHEN $3 THEN now() ELSE supervised_at END,
            wake_requested_at = CASE WHEN state = 'input-required' AND NOT $3 THEN wake_requested_at END
      WHERE tenant_id = $1 AND message_id = $2 RETURNING *`,
    [tenant_id, message_id, by === 'workflow'],
    'lock_running',
  );
  return row ?? null;
}

/** Where a message stands. */
interface Looked {
  row: GatedRow | null;
  step: Step | null;
  /** The queue in which it waits for an agent. */
  queue: string | null;
  hasChanged: boolean;
  /** The message has a workflow, which has to be told of changes. */
  isWatched: boolean;
}

/** No message was locked. */
const UNLOCKED = { row: null, queue: null, hasChanged: false, isWatched: false };

/** One transaction that decides the step. @throws VerdictNeeded where policies have to be asked first */
function stepBy(core: MessageCore, ref: MessageRef, by: Looker, known: KnownVerdicts, now: Date): Promise<Looked> {
  return core.db.tenant(ref.tenant_id, async (tx) => {
    const session = await lockSession(tx, ref);
    const row = await lockRow(tx, ref, by);
    if (!session || !row) return { ...UNLOCKED, step: await doneStep(tx, ref) };
    const gate = new PolicyGate(core, tx, row, known);
    const context = { tx, row, session, gate, now, limits: core.limits };
    const isWatched = row.supervised_at !== null;
    if (row.held_output && row.state === 'working') {
      const step = await deliverStep(context, row.held_output);
      return { row, queue: null, step, hasChanged: true, isWatched };
    }
    const queuedStep = await stepOf(context);
    return { row, ...queuedStep, hasChanged: gate.hasAsked, isWatched };
  });
}

/** The pause while the evaluators of a tenant's policies are busy. */
const EVALUATORS_BUSY_MS = 500;
/** No evaluator is asked later than this in one step: a local activity has 20 s, and a decision takes up to 15. */
const EVALUATION_STARTS_MS = 4_000;

/** The step of a message about which policies have not decided yet. @param row as it was read */
function waitForPolicies(row: GatedRow): Looked {
  return { ...UNLOCKED, step: waits(row, 'evaluator', 'Waits for the evaluators of policies.', EVALUATORS_BUSY_MS) };
}

/** As `stepBy`, with the policies asked between transactions. */
async function decidedStep(core: MessageCore, ref: MessageRef, by: Looker, now: () => Date): Promise<Looked> {
  const known: KnownVerdicts = new Map();
  const startedAtMs = performance.now();
  for (;;) {
    try {
      return await stepBy(core, ref, by, known, now());
    } catch (error) {
      if (!(error instanceof VerdictNeeded)) throw error;
      const { row, key, request } = error;
      const isLate = performance.now() - startedAtMs > EVALUATION_STARTS_MS;
      if (isLate || core.policies.isBusy(ref.tenant_id)) return waitForPolicies(row);
      const verdict = await core.policies.decide(ref.tenant_id, request);
      if (isUndecided(verdict)) return waitForPolicies(row);
      known.set(key, verdict);
    }
  }
}

/**
 * Takes a message that rests a step further: it joins its queue, policies decide about it, a human is reminded, or it fails because its time is over. Postgres
 * decides, so a repeated call, after a crash for example, gives the same step.
 */
export async function takeStep(
  core: MessageCore,
  ref: MessageRef,
  by: Looker,
  now = () => new Date(),
): Promise<Pick<Looked, 'step' | 'queue' | 'isWatched'>> {
  const { row, step, queue, hasChanged, isWatched } = await decidedStep(core, ref, by, now);
  if (hasChanged) core.bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
  if (row && step?.kind === 'done' && step.state === 'failed') announceFailed(core, row, step.error?.code);
  if (queue !== null) core.nodes.look({ tenant_id: ref.tenant_id, queue });
  return { step, queue, isWatched };
}

/** Fails a message whose workflow an operator terminated in the Temporal UI. */
export async function failByOperator(core: MessageCore, ref: MessageRef, error: StoredError): Promise<void> {
  const ended = await core.db.tenant(ref.tenant_id, async (tx) => {
    const row = await lockRunning(tx, ref);
    if (!row || isTerminal(row.state)) return null;
    await failMessage(tx, row, error);
    return row;
  });
  if (ended) announceFailed(core, ended, error.code);
}
