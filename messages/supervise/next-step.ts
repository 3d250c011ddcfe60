import { slotOf } from '../../agents/agent-row.js';
import { isTerminal } from '../../contracts/api/messages.js';
import type { Tx } from '../../db/pool.js';
import { isUndecided } from '../../policy/verdict.js';
import { newEventId } from '../../runtime/ids.js';
import { targetWaitedText } from '../accept/targets.js';
import type { MessageCore, MessageRef } from '../core.js';
import { boundedError, logEnd, type StoredError } from '../dispatch/message-end.js';
import { deliverHeld } from '../input/held-output.js';
import { lockRunning, openRequests } from '../read/read.js';
import type { HeldOutput, InputRequestRow, MessageRow, RunningRow, SessionBinding } from '../read/rows.js';
import { inputStep } from './input-step.js';
import { type GatedRow, type KnownVerdicts, PolicyGate, type Stop, VerdictNeeded } from './policy-step.js';
import { LOOK_MAX_MS, type Step, stepError, type WaitStep } from './step.js';

/** Who looks at a message: its workflow, or a process that takes it a step further. */
export type Looker = 'workflow' | 'process';

/** Where a message stands, and the queue in which it waits for an agent. */
export interface Standing {
  step: Step | null;
  queue: string | null;
  /** It has a workflow, which is to hear of changes. */
  isWatched: boolean;
}

/** A message whose wait is over while an agent has room still gets that one, up to this multiple of the wait: the platform itself may have been slow. */
const LATE_FACTOR = 10;
/** And for so long beyond it at most, in milliseconds. */
const LATE_MAX_MS = 1_800_000;
/** In milliseconds; so long it is given then. */
const LATE_MS = 1_000;

/** Of a message that is dispatched again after a loss (docs/durability.md#idempotent-skills). */
const OUT_OF_TIME = {
  code: 'DEADLINE_EXCEEDED',
  message: 'The agent was lost, and nobody did the message again in time.',
};
const EXPIRED = { code: 'APPROVAL_EXPIRED', message: 'Nobody answered in time.' };

/** A message whose opening raised so often fails. */
const FAILED_OPENINGS_MAX = 10;
const NOT_OPENED = { code: 'INTERNAL', message: 'The platform failed to give the message to an agent.' };

/** Fails a locked message. @param requestState the new state of its open input request */
export async function failedStep(
  tx: Tx,
  row: RunningRow,
  error: StoredError,
  requestState: 'expired' | 'withdrawn' = 'withdrawn',
): Promise<Step> {
  const { code, message } = boundedError(error);
  const values = [row.tenant_id, row.message_id, code, message, requestState, newEventId()];
  await tx.query('SELECT fail_message($1, $2, $3, $4, $5, $6)', values);
  return { kind: 'done', state: 'failed', agent_type: row.agent_type, ...stepError(code) };
}

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

/** What a step is decided with. */
interface Context {
  tx: Tx;
  row: GatedRow;
  session: SessionBinding;
  gate: PolicyGate;
  now: Date;
}

function waits(row: RunningRow, waits_for: WaitStep['waits_for'], details: string, wait_ms = LOOK_MAX_MS): WaitStep {
  const agent_type = row.agent_type ?? row.want_agent_type;
  return {
    kind: 'waits',
    waits_for,
    state: row.state,
    agent_type,
    details,
    wait_ms: Math.max(1, Math.min(wait_ms, LOOK_MAX_MS)),
  };
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

/** Should nobody tell it that its turn has come, a sweeper looks. */
const LOOK_LATER = `
  UPDATE running_messages SET wake_requested_at = look_later() WHERE tenant_id = $1 AND message_id = $2`;
/** Waits for a transaction that is ending the message. No row: it has ended. */
const STILL_RUNS = 'SELECT 1 FROM running_messages WHERE tenant_id = $1 AND message_id = $2 FOR KEY SHARE';

/**
 * The step of a message whose ordered session has another one at work, or before it; null when it is its turn. The end of that one wakes it, and
 * passes over it while it is locked here: so an end that is under way is waited for.
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
    await tx.query(LOOK_LATER, [row.tenant_id, row.message_id], 'look_later');
    return waits(row, 'turn', `Waits for its turn in its session since ${row.created_at.toISOString()}.`);
  }
}

/** The step of a message whose request is open: it waits for the human, or fails once the time is up. */
async function personStep({ tx, now }: Context, row: RunningRow, request: InputRequestRow): Promise<Step> {
  return (await inputStep(tx, row, request, now)) ?? failedStep(tx, row, EXPIRED, 'expired');
}

/** The step of a message that does not go on in this transaction: it fails, or waits for the human that was asked just now. */
async function stoppedStep(context: Context, stop: Stop): Promise<Step> {
  const { tx, row } = context;
  if (stop.kind === 'failed') return failedStep(tx, row, stop.error);
  const asked = { ...row, state: 'input-required' as const };
  const request = (await openRequests(tx, row.tenant_id, [asked])).get(row.message_id);
  if (!request) throw new Error('the request that was written just now is not open');
  return personStep(context, asked, request); // its time may be over by a clock that is ahead of the database's
}

/** Delivers what its agent has answered and a human has approved: the message ends, or waits for the answer to its agent's question. */
async function deliverStep(context: Context, held: HeldOutput, inputExpiryMs: number): Promise<Step> {
  const state = await deliverHeld(context.tx, context.row, held, inputExpiryMs);
  if (state === 'input-required') return stoppedStep(context, { kind: 'asked' });
  return { kind: 'done', state, agent_type: context.row.agent_type };
}

interface Wait {
  queue: string;
  since: Date;
  left_ms: number;
  waited_ms: number;
  /** An agent has room. */
  may_go: boolean;
}

/** Puts a message that rests into its queue, and reads how long it may wait there. @param offlineMs while no agent of its target is online */
async function queued(
  tx: Tx,
  { tenant_id, message_id, session_id }: RunningRow,
  now: Date,
  offlineMs: number,
): Promise<Wait> {
  const [wait] = await tx.query<Wait & Record<string, unknown>>(
    `SELECT q.queue, w.since, w.left_ms, (extract(epoch FROM $3::timestamptz - w.since) * 1000)::bigint AS waited_ms,
            w.left_ms <= 0 AND EXISTS (SELECT 1 FROM agents_to_fill($1, q.queue) f JOIN agents a ON a.tenant_id = $1 AND a.instance_id = f.instance_id
              JOIN sessions s ON s.tenant_id = $1 AND s.session_id = $5
              WHERE coalesce(room_left(a) > 0, true) OR session_holds_slot(s.tenant_id, s.session_id, reserves_on(s), a.instance_id)) AS may_go
       FROM queue_message($1, $2) AS q (queue) CROSS JOIN LATERAL route_wait($1, $2, $3, $4) w`,
    [tenant_id, message_id, now, offlineMs, session_id],
    'queue_message',
  );
  if (!wait) throw new Error('queue_message gave no row');
  return wait;
}

/** A step, and the queue in which the message then waits for an agent. */
interface QueuedStep {
  step: Step;
  queue: string | null;
}

/** The step of a message that nothing but an agent's room keeps waiting. */
async function roomStep(context: Context, offlineMs: number): Promise<QueuedStep> {
  const { tx, row, session, now } = context;
  const { queue, since, left_ms, waited_ms, may_go } = await queued(tx, row, now, offlineMs);
  const lateMs = Math.min(LATE_MAX_MS, (waited_ms + left_ms) * (LATE_FACTOR - 1));
  const isLate = left_ms <= 0 && !(may_go && -left_ms < lateMs);
  if (isLate) {
    const message = await targetWaitedText(tx, row, session, waited_ms);
    return { step: await failedStep(tx, row, { code: 'TARGET_UNAVAILABLE', message }), queue: null };
  }
  const leftMs = left_ms <= 0 ? LATE_MS : left_ms;
  await tx.query(
    `UPDATE running_messages SET wait_ends_at = greatest(wait_ends_at, $3::timestamptz + $4 * interval '1 ms')
      WHERE tenant_id = $1 AND message_id = $2`,
    [row.tenant_id, row.message_id, now, leftMs],
  );
  const type = row.want_agent_type ?? row.agent_type;
  const ofType = type ? ` of type ${type}` : '';
  return { step: waits(row, 'room', `Waits for a free agent${ofType} since ${since.toISOString()}.`, leftMs), queue };
}

/** The step of a message that does not wait for an agent's room; null: it joins a queue. */
async function stepBeforeQueue(context: Context): Promise<Step | null> {
  const { tx, row, session, gate, now } = context;
  if (row.state === 'input-required') {
    const request = (await openRequests(tx, row.tenant_id, [row])).get(row.message_id);
    if (request) return personStep(context, row, request);
  }
  const current = await dispatchStep(tx, row);
  if (current) return current;
  if (row.repeat_until && now >= row.repeat_until) return failedStep(tx, row, OUT_OF_TIME);
  if (row.failed_openings >= FAILED_OPENINGS_MAX) return failedStep(tx, row, NOT_OPENED);
  const turn = row.ordered ? await turnStep(tx, row) : null;
  if (turn) return turn;
  const stop = await gate.admit(session);
  return stop && stoppedStep(context, stop);
}

/** Decides the step of a locked message. What it waits for `waiting` in messages/read/waits.ts tells callers, from its row. */
async function stepOf(context: Context, queueWaitMs: number): Promise<QueuedStep> {
  const step = await stepBeforeQueue(context);
  return step ? { step, queue: null } : roomStep(context, queueWaitMs);
}

/** Locks the session of a message, in which it is routed; null when no such message of the tenant runs. */
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

/** Locks a message; null when it has ended. That it waits for a human only its workflow may know, which then waits for the times of that. */
async function lockRow(tx: Tx, { tenant_id, message_id }: MessageRef, by: Looker): Promise<GatedRow | null> {
  if (by === 'workflow') await tx.query(WORKFLOW_LOOKS, [tenant_id, message_id], 'workflow_heard');
  const [row] = await tx.query<GatedRow & Record<string, unknown>>(
    `UPDATE running_messages SET supervised_at = CASE WHEN $3 THEN now() ELSE supervised_at END,
            wake_requested_at = CASE WHEN state = 'input-required' AND NOT $3 THEN wake_requested_at END
      WHERE tenant_id = $1 AND message_id = $2 RETURNING *`,
    [tenant_id, message_id, by === 'workflow'],
    'lock_running',
  );
  return row ?? null;
}

interface Looked extends Standing {
  row: GatedRow | null;
  hasChanged: boolean;
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
    const context = { tx, row, session, gate, now };
    const isWatched = row.supervised_at !== null;
    if (row.held_output && row.state === 'working') {
      const step = await deliverStep(context, row.held_output, core.limits.inputExpiryMs);
      return { row, queue: null, step, hasChanged: true, isWatched };
    }
    const queuedStep = await stepOf(context, core.limits.queueWaitMs);
    return { row, ...queuedStep, hasChanged: gate.hasAsked, isWatched };
  });
}

/** The pause while the evaluators of a tenant's policies are busy. */
const EVALUATORS_BUSY_MS = 500;
/** No evaluator is asked later than this in one step: a local activity has 20 s, and a decision takes up to 15. */
const EVALUATION_STARTS_MS = 4_000;

function waitForPolicies(): Looked {
  const details = 'Waits for the evaluators of policies.';
  const step = { kind: 'waits', waits_for: 'evaluator', state: 'submitted', agent_type: null, details } as const;
  return { ...UNLOCKED, step: { ...step, wait_ms: EVALUATORS_BUSY_MS } };
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
      const { key, request } = error;
      const isLate = performance.now() - startedAtMs > EVALUATION_STARTS_MS;
      if (isLate || core.policies.isBusy(ref.tenant_id)) return waitForPolicies();
      const verdict = await core.policies.decide(ref.tenant_id, request);
      if (isUndecided(verdict)) return waitForPolicies();
      known.set(key, verdict);
    }
  }
}

/**
 * Takes a message that rests a step further: it joins its queue, is decided about, is reminded of, or fails where its time is over. Postgres
 * decides, so a repeated call, after a crash for example, gives the same step.
 */
export async function takeStep(
  core: MessageCore,
  ref: MessageRef,
  by: Looker,
  now = () => new Date(),
): Promise<Standing> {
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
    await failedStep(tx, row, error);
    return row;
  });
  if (ended) announceFailed(core, ended, error.code);
}

/** After the commit: notifies streams, the log and the agent of a failed message. @param row as it was before */
export function announceFailed(core: MessageCore, row: RunningRow, code: string | undefined): void {
  core.bus.publish(row.tenant_id, row.message_id, { kind: 'changed' });
  logEnd(core.log, { ...row, state: 'failed', dispatch_id: row.current_dispatch_id, code });
  const freed = slotOf(row);
  if (freed) core.nodes.fill(freed);
}
