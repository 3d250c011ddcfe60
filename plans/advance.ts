import type { PlanState, StepState } from '../contracts/api/plans.js';
import type { Db, Tx } from '../db/pool.js';
import { awaitedText, remindOrExpire } from '../messages/supervise/input-step.js';
import { readPlanRequest } from './approvals/plan-request.js';
import { cancelLocked, endPlan, rejectLocked } from './plan-end.js';
import {
  factsOf,
  lockPlan,
  type ObservedStep,
  observedSteps,
  type PlanRef,
  type PlanRow,
  writeSteps,
} from './plan-rows.js';
import { nextMoves } from './steps/next-moves.js';

/** A step as the Temporal UI shows it. */
export interface ShownStep {
  step_id: string;
  state: StepState;
  attempts: number;
  /** The agent that works on it, or was the last to; before that, the one that is asked for. */
  agent: string | null;
  /** When the agent got it; absent for a step that no agent has. */
  since?: string;
  error?: string;
}

/** What a plan's workflow does next. It goes into the history, so it has only identifiers, states, times and codes. */
export interface Advance {
  state: PlanState | 'unknown';
  /** The next attempts of these steps start. */
  start: { place: number; step_id: string; attempt: number }[];
  /** Messages of steps that have ended: they are to be canceled. */
  cancel: string[];
  /** How long to wait if nothing happens; null: until something happens. */
  wait_ms: number | null;
  steps: ShownStep[];
  /** Of a proposed plan: what is awaited, for operators. */
  awaited?: string;
}

/** When the plan starter looks whether the workflow is still there, in milliseconds. */
export const CHECK_MS = 600_000;

const EMPTY = { start: [], cancel: [], wait_ms: null };

/** Why the session of a plan has ended; null while it is active. */
async function sessionEnd(tx: Tx, { tenant_id, session_id }: PlanRow): Promise<string | null> {
  const [session] = await tx.query<{ status: string; ended_reason: string | null }>(
    'SELECT status, ended_reason FROM sessions WHERE tenant_id = $1 AND session_id = $2',
    [tenant_id, session_id],
  );
  if (session?.status === 'active') return null;
  return `the session has ended: ${session?.ended_reason ?? 'it does not exist'}`;
}

/** Messages of ended steps that have not ended themselves. */
async function messagesToCancel(tx: Tx, { tenant_id, plan_id }: PlanRef): Promise<string[]> {
  const rows = await tx.query<{ message_id: string }>(
    `SELECT r.message_id FROM plan_steps s JOIN running_messages r ON r.tenant_id = s.tenant_id AND r.message_id = s.message_id
      WHERE s.tenant_id = $1 AND s.plan_id = $2 AND s.state IN ('completed', 'failed', 'skipped')
        AND r.state IN ('submitted', 'working', 'input-required') ORDER BY s.place`,
    [tenant_id, plan_id],
  );
  return rows.map(({ message_id }) => message_id);
}

function shown(step: ObservedStep): ShownStep {
  const { step_id, state, attempts, worker_type, worker_id, worker_since, error_code } = step;
  const wanted = step.instance_id ?? step.agent_type ?? step.skill_id;
  return {
    ...{ step_id, state, attempts },
    agent: worker_id === null ? wanted : `${worker_id} (${worker_type})`,
    ...(worker_since && { since: worker_since.toISOString() }),
    ...(error_code !== null && { error: error_code }),
  };
}

/** Decides about a locked plan that is proposed: it waits, somebody is reminded of it, or its time has passed. */
async function decideProposed(tx: Tx, plan: PlanRow, now: Date): Promise<Omit<Advance, 'steps'>> {
  const wait = await remindOrExpire(tx, await readPlanRequest(tx, plan), now);
  if (wait) {
    const awaited = awaitedText(wait.request, plan.plan_id);
    return { ...EMPTY, state: 'proposed', wait_ms: wait.wait_ms, awaited };
  }
  await rejectLocked(tx, plan, null);
  return { ...EMPTY, state: 'rejected' };
}

/** Decides about a locked plan that runs. */
async function decideRunning(tx: Tx, plan: PlanRow, now: Date): Promise<Omit<Advance, 'steps'>> {
  const rows = await observedSteps(tx, plan);
  const moves = nextMoves(rows.map(factsOf), plan.max_parallel, now);
  await writeSteps(tx, plan, moves.changed);
  if (moves.end) await endPlan(tx, plan, moves.end, rows.length);
  const start = moves.start.flatMap((place) => {
    const row = rows[place];
    return row ? [{ place, step_id: row.step_id, attempt: row.attempts + 1 }] : [];
  });
  const wait_ms = moves.next_at && Math.max(0, moves.next_at.getTime() - now.getTime());
  return { state: moves.end?.state ?? 'running', start, cancel: [], wait_ms };
}

async function decide(tx: Tx, plan: PlanRow, now: Date): Promise<Omit<Advance, 'steps'>> {
  if (plan.state !== 'proposed' && plan.state !== 'running') return { ...EMPTY, state: plan.state };
  const reason = await sessionEnd(tx, plan);
  if (reason !== null) {
    await cancelLocked(tx, plan, reason);
    return { ...EMPTY, state: 'canceled' };
  }
  return plan.state === 'proposed' ? decideProposed(tx, plan, now) : decideRunning(tx, plan, now);
}

/**
 * Decides what the workflow of a plan does next, and writes what has become of its steps. Postgres decides and the workflow follows: a
 * repeated call, after a crash for example, gives what is still to be done.
 */
export async function advancePlan(db: Db, ref: PlanRef, now = () => new Date()): Promise<Advance> {
  return db.tenant(ref.tenant_id, async (tx) => {
    const plan = await lockPlan(tx, ref);
    if (!plan) return { ...EMPTY, state: 'unknown' as const, steps: [] };
    const decided = await decide(tx, plan, now());
    const cancel = await messagesToCancel(tx, plan);
    const isOpen = decided.state === 'proposed' || decided.state === 'running';
    const checkMs = isOpen || cancel.length > 0 ? CHECK_MS : null;
    await tx.query(`UPDATE plans SET check_at = now() + $3 * interval '1 ms' WHERE tenant_id = $1 AND plan_id = $2`, [
      plan.tenant_id,
      plan.plan_id,
      checkMs,
    ]);
    return { ...decided, cancel, steps: (await observedSteps(tx, plan)).map(shown) };
  });
}
