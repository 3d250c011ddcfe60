import type { MessageSendParams } from '../../contracts/a2a/a2a.js';
import type { Part } from '../../contracts/a2a/parts.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Tx } from '../../db/pool.js';
import { type AcceptDeps, acceptMessage } from '../../messages/accept/accept.js';
import type { AcceptHook } from '../../messages/accept/accept-transaction.js';
import type { AcceptContext } from '../../messages/accept/draft.js';
import { recordDecision } from '../../policy/enforce.js';
import type { DecisionEvent } from '../../policy/verdict.js';
import { PlatformError } from '../../runtime/errors.js';
import { planStepSpanId } from '../../runtime/ids.js';
import { decideStep } from '../approvals/plan-policy.js';
import {
  creatorOf,
  factsOf,
  lockPlan,
  observedSteps,
  type PlanRef,
  type PlanRow,
  type StepRow,
  writeSteps,
} from '../plan-rows.js';
import { failedStep, type PlanError, pauseMs } from './next-moves.js';
import { messageOf, readOutputs, type UsedOutputs } from './step-message.js';

export interface StepAttempt {
  place: number;
  attempt: number;
}

/** The plan or the step has moved on since the attempt was decided: nothing is to be sent. */
class AttemptOutdated extends Error {}

/** An attempt that is to be sent. */
interface DueStep {
  plan: PlanRow;
  step: StepRow;
  /** The creator's credential does not hold any more. */
  revoked: boolean;
  /** The outputs that its message uses, or why they cannot be used. */
  outputs: UsedOutputs;
  /** A human has approved an attempt of the step before. */
  approved: boolean;
}

async function readStep(tx: Tx, { tenant_id, plan_id }: PlanRef, place: number): Promise<StepRow | undefined> {
  const [step] = await tx.query<StepRow>(
    'SELECT * FROM plan_steps WHERE tenant_id = $1 AND plan_id = $2 AND place = $3',
    [tenant_id, plan_id, place],
  );
  return step;
}

const isDue = (plan: PlanRow, step: StepRow | undefined, attempt: number): step is StepRow =>
  plan.state === 'running' && step?.state === 'pending' && step.attempts === attempt - 1;

/** Whether the creator's credential was revoked or has expired, which ends what is done in its name. */
async function isRevoked(tx: Tx, { credential_id }: PlanRow): Promise<boolean> {
  const rows = await tx.query(
    'SELECT 1 FROM credentials WHERE credential_id = $1 AND (revoked_at IS NOT NULL OR expires_at <= now())',
    [credential_id],
  );
  return rows.length > 0;
}

/**
 * Whether a human has approved the step. An earlier attempt may have failed before anybody was asked: its agent was not registered, for
 * example. A rejection fails the step, so that what was resolved before another attempt was approved.
 */
async function isApproved(tx: Tx, { tenant_id, plan_id, place, attempts }: StepRow): Promise<boolean> {
  if (attempts === 0) return false;
  const rows = await tx.query(
    `SELECT 1 FROM plan_messages p JOIN input_requests q ON q.tenant_id = p.tenant_id AND q.message_id = p.message_id
      WHERE p.tenant_id = $1 AND p.plan_id = $2 AND p.place = $3 AND q.stage = 'plan' AND q.state = 'resolved' LIMIT 1`,
    [tenant_id, plan_id, place],
  );
  return rows.length > 0;
}

/** What an attempt sends; null when it is not due any more. */
async function readDue(tx: Tx, ref: PlanRef, { place, attempt }: StepAttempt): Promise<DueStep | null> {
  const plan = await lockPlan(tx, ref);
  const step = await readStep(tx, ref, place);
  if (!plan || !isDue(plan, step, attempt)) return null;
  const approved = step.requires_approval && (await isApproved(tx, step));
  return { plan, step, revoked: await isRevoked(tx, plan), outputs: await readOutputs(tx, step), approved };
}

/** Marks the step as started by this message, in the transaction that accepts the message. @throws AttemptOutdated */
function stepStarter({ plan, step }: DueStep, attempt: number, events: readonly DecisionEvent[]): AcceptHook {
  return async (tx, { tenant_id, message_id }, state) => {
    const locked = await lockPlan(tx, plan);
    if (!locked || !isDue(locked, await readStep(tx, plan, step.place), attempt)) throw new AttemptOutdated();
    await recordDecision(tx, tenant_id, plan.session_id, events);
    const waits = state === 'input-required';
    await tx.query(
      `WITH marked AS (UPDATE messages SET notifies = true WHERE tenant_id = $1 AND message_id = $4),
        linked AS (INSERT INTO plan_messages (tenant_id, message_id, plan_id, place, attempt) VALUES ($1, $4, $2, $3, $5))
       UPDATE plan_steps SET state = $6, attempts = $5, message_id = $4, started_at = coalesce(started_at, now()), retry_at = NULL, postponed = 0,
              error_code = CASE WHEN postponed = 0 THEN error_code END, error_message = CASE WHEN postponed = 0 THEN error_message END,
              due_at = CASE WHEN $7 THEN NULL ELSE coalesce(due_at, now() + timeout_seconds * interval '1 s') END,
              time_left_ms = CASE WHEN NOT $7 THEN NULL WHEN due_at IS NULL THEN timeout_seconds * 1000::bigint
                ELSE milliseconds_between(now(), due_at) END
        WHERE tenant_id = $1 AND plan_id = $2 AND place = $3`,
      [tenant_id, plan.plan_id, step.place, message_id, attempt, waits ? 'input-required' : 'running', waits],
    );
  };
}

function paramsOf({ plan, step }: DueStep, parts: Part[], attempt: number): MessageSendParams {
  const { agent_type, instance_id, skill_id, timeout_seconds, step_id } = step;
  const { plan_id, session_id } = plan;
  // The same for a repeat of the attempt, which would otherwise be another message.
  const deadline_ms = timeout_seconds === null ? undefined : Math.min(LIMITS.deadlineMsMax, timeout_seconds * 1_000);
  return {
    message: {
      kind: 'message',
      role: 'user',
      messageId: `${plan_id}:${step_id}:${attempt}`,
      contextId: session_id,
      parts,
    },
    metadata: {
      ...(agent_type !== null && { agent_type }),
      ...(instance_id !== null && { instance_id }),
      ...(skill_id !== null && { skill_id }),
      ...(deadline_ms !== undefined && { deadline_ms }),
      plan: { plan_id, step_id, attempt },
    },
  };
}

/** What became of an attempt that sent nothing. */
interface Unsent {
  error: PlanError;
  /** There is no room for the attempt now: it is repeated, after so many milliseconds at least. */
  waitMs?: number;
  /** Events of policies. */
  events?: readonly DecisionEvent[];
}

/** @param waitMs the pause is at least as long; it grows with each time in a row that there is no room @param reason is shown meanwhile */
async function postpone(tx: Tx, step: StepRow, waitMs: number, reason: PlanError): Promise<void> {
  const { tenant_id, plan_id, place, postponed } = step;
  const retryMs = Math.max(waitMs, pauseMs(postponed + 1));
  await tx.query(
    `UPDATE plan_steps SET postponed = postponed + 1, retry_at = now() + $4 * interval '1 ms', error_code = $5, error_message = $6
      WHERE tenant_id = $1 AND plan_id = $2 AND place = $3`,
    [tenant_id, plan_id, place, retryMs, reason.code, reason.message],
  );
}

async function writeUnsent(tx: Tx, ref: PlanRef, { place, attempt }: StepAttempt, unsent: Unsent): Promise<void> {
  const { error, waitMs, events = [] } = unsent;
  const plan = await lockPlan(tx, ref);
  const step = plan && (await readStep(tx, ref, place));
  if (!plan || !step || !isDue(plan, step, attempt)) return;
  if (waitMs !== undefined) await postpone(tx, step, waitMs, error);
  else {
    const facts = (await observedSteps(tx, ref)).map(factsOf)[place];
    if (facts) await writeSteps(tx, ref, [failedStep(facts, error)]);
  }
  await recordDecision(tx, ref.tenant_id, plan.session_id, events);
}

/** Refusals that say nothing about the message: there is room for it later. */
const NO_ROOM = new Set(['RATE_LIMITED', 'QUOTA_EXCEEDED']);
/** A quota begins anew after hours or weeks; somebody may raise it before. */
const ROOM_WAIT_MAX_MS = 900_000;

/** Why an attempt cannot be sent. @throws what is not about the message */
function refusalOf(error: unknown): Unsent {
  if (!(error instanceof PlatformError) || error.statusCode >= 500) throw error;
  const { code, message, headers } = error;
  if (!NO_ROOM.has(code)) return { error: { code, message } };
  const waitMs = 1_000 * (Number(headers['Retry-After']) || 0);
  return { error: { code, message }, waitMs: Math.min(ROOM_WAIT_MAX_MS, waitMs) };
}

/** Sends the message of an attempt. @returns null when it was sent, or was not due any more */
async function send(deps: AcceptDeps, due: DueStep, attempt: number): Promise<Unsent | null> {
  const { plan, step, approved } = due;
  const { policies, limits } = deps.core;
  if (due.revoked)
    return {
      error: { code: 'unauthorized', message: 'The credential that created the plan is revoked or has expired.' },
    };
  const message = messageOf(step, due.outputs);
  if ('code' in message) return { error: message };
  const { parts } = message;
  const decided = await decideStep({ policies, approvalMs: limits.inputExpiryMs, approved }, plan, step, parts);
  if (decided.error !== undefined) return decided;
  const context: AcceptContext = {
    method: 'message/send',
    traceparent: `00-${plan.trace_id}-${planStepSpanId(plan.plan_id, step.place)}-${plan.sampled ? '01' : '00'}`,
    hook: stepStarter(due, attempt, decided.events),
    ...(decided.ask && { ask: decided.ask }),
  };
  try {
    const { duplicate } = await acceptMessage(deps, creatorOf(plan), paramsOf(due, parts, attempt), context);
    // An attempt and its message are written together, so somebody else has sent this one.
    return duplicate
      ? { error: { code: 'IDEMPOTENCY_MISMATCH', message: 'The messageId of the step is in use.' } }
      : null;
  } catch (error) {
    return error instanceof AttemptOutdated ? null : refusalOf(error);
  }
}

/**
 * Sends the message of one attempt of a step, as the plan's creator. The message and the step are written in one transaction, so that a repeat
 * after a crash finds the attempt started, or starts it. What cannot be sent fails the step.
 * @throws PlatformError SERVICE_UNAVAILABLE, for the call to be repeated
 */
export async function startStep(deps: AcceptDeps, ref: PlanRef, due: StepAttempt): Promise<void> {
  const { db } = deps.core;
  const found = await db.tenant(ref.tenant_id, (tx) => readDue(tx, ref, due));
  const unsent = found && (await send(deps, found, due.attempt));
  if (unsent) await db.tenant(ref.tenant_id, (tx) => writeUnsent(tx, ref, due, unsent));
}
