import { recordEvent } from '../db/events.js';
import type { Tx } from '../db/pool.js';
import { closePlanRequest } from './approvals/plan-request.js';
import { factsOf, observedSteps, type PlanRow, writeSteps } from './plan-rows.js';
import { failedStep, observed, type PlanEnd, type PlanError, type StepFacts } from './steps/next-moves.js';

async function writeEnd(
  tx: Tx,
  plan: PlanRow,
  state: PlanRow['state'],
  error?: PlanError,
  failedStep?: number,
): Promise<number> {
  const [row] = await tx.query<{ duration_ms: number }>(
    `UPDATE plans SET state = $3, ended_at = now(), error_code = $4, error_message = $5, failed_step = $6
      WHERE tenant_id = $1 AND plan_id = $2 RETURNING milliseconds_between(coalesce(started_at, created_at), now()) AS duration_ms`,
    [plan.tenant_id, plan.plan_id, state, error?.code ?? null, error?.message ?? null, failedStep ?? null],
  );
  await tx.query('SELECT record_plan_outcome($1, $2, $3)', [plan.tenant_id, plan.plan_id, error?.code ?? null]);
  return row?.duration_ms ?? 0;
}

/** Ends a locked plan whose steps have all ended. */
export async function endPlan(tx: Tx, plan: PlanRow, end: PlanEnd, steps: number): Promise<void> {
  const { plan_id, session_id } = plan;
  if (end.state === 'completed') {
    const duration_ms = await writeEnd(tx, plan, 'completed');
    await recordEvent(tx, plan, 'plan.completed', { plan_id, session_id, steps_completed: steps, duration_ms });
    return;
  }
  const { failed_step, error } = end;
  await writeEnd(tx, plan, 'failed', error, failed_step);
  const failure = { plan_id, session_id, failed_step, error: error.code };
  await recordEvent(tx, { ...plan, severity: 'warning' }, 'plan.failed', failure);
}

/** Ends the steps of a locked plan that have not ended: what is under way failed for this reason, what is pending is skipped. */
async function closeSteps(tx: Tx, plan: PlanRow, error: PlanError): Promise<void> {
  const before = (await observedSteps(tx, plan)).map(factsOf);
  const now = new Date();
  const after = observed(before, now).map((step): StepFacts => {
    if (step.state === 'pending') return { ...step, state: 'skipped', retry_at: null, due_at: null };
    return step.state === 'running' || step.state === 'input-required' ? failedStep(step, error) : step;
  });
  const changed = after.filter((step, index) => step !== before[index]);
  await writeSteps(tx, plan, changed);
}

/** Cancels a locked plan that has not ended. Its workflow then cancels the messages of its steps. */
export async function cancelLocked(tx: Tx, plan: PlanRow, reason: string): Promise<void> {
  const { plan_id, session_id } = plan;
  await closePlanRequest(tx, plan, 'withdrawn');
  await closeSteps(tx, plan, { code: 'CANCELED', message: 'The plan was canceled.' });
  await writeEnd(tx, plan, 'canceled', { code: 'CANCELED', message: reason });
  await recordEvent(tx, plan, 'plan.canceled', { plan_id, session_id, reason });
}

/** Rejects a locked plan that is proposed. @param by who rejected it; null: nobody approved it in time */
export async function rejectLocked(tx: Tx, plan: PlanRow, by: string | null): Promise<void> {
  const { plan_id, session_id } = plan;
  const error =
    by === null
      ? { code: 'APPROVAL_EXPIRED', message: 'Nobody approved the plan in time.' }
      : { code: 'APPROVAL_REJECTED', message: 'The plan was rejected.' };
  if (by === null) await closePlanRequest(tx, plan, 'expired');
  await closeSteps(tx, plan, error);
  await writeEnd(tx, plan, 'rejected', error);
  await recordEvent(tx, plan, 'plan.rejected', { plan_id, session_id, rejected_by: by });
}
