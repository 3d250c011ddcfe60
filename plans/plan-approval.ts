import type { Caller } from '../contracts/api/auth.js';
import { planDecisionRefusal } from '../contracts/permissions.js';
import { recordEvent } from '../db/events.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { PlanApproval, PlanRow } from './plan-rows.js';

/** When the approval of a plan is asked for again for the first time, in milliseconds; null for never. Without reminders that is to escalate. */
export function firstReminderMs({ reminder_seconds, escalate_to = [], timeout_seconds }: PlanApproval): number | null {
  if (reminder_seconds !== undefined) return reminder_seconds * 1_000;
  return escalate_to.length > 0 ? timeout_seconds * 500 : null;
}

/** A reminder is an event, deliveries and a turn of a workflow: there are a thousand for one plan at most. */
const REMINDERS_MAX = 1_000;
const REMINDER_MIN_MS = 60_000;

/** How long after a reminder the next one comes, in milliseconds; null for no more (`next_reminder` in db/functions/input/open_request.sql). */
export function nextReminderMs({ reminder_seconds, timeout_seconds }: PlanApproval): number | null {
  if (reminder_seconds === undefined) return null;
  return Math.max(reminder_seconds * 1_000, REMINDER_MIN_MS, (timeout_seconds * 1_000) / REMINDERS_MAX);
}

/** Who may decide about a plan beside those with the scope `admin`. The first reminder escalates. */
export function approversOf({ approval, reminders }: Pick<PlanRow, 'approval' | 'reminders'>): string[] {
  if (!approval) return [];
  return reminders > 0 ? [...approval.approvers, ...(approval.escalate_to ?? [])] : approval.approvers;
}

/** @throws PlatformError forbidden for a caller that may not decide about the plan */
export function requireApprover(plan: PlanRow, caller: Caller): void {
  const refusal = planDecisionRefusal(caller, approversOf(plan));
  if (refusal !== null) throw new PlatformError('forbidden', refusal);
}

/** Records that a policy or a guard demands the approval of a plan: the first time, or as a reminder. */
export async function recordApprovalRequired(
  tx: Tx,
  plan: Pick<PlanRow, 'tenant_id' | 'plan_id' | 'session_id' | 'description' | 'reminders' | 'approval_expires_at'>,
  { reason, policy_id, guard }: PlanApproval,
): Promise<void> {
  const { plan_id, session_id, description, reminders } = plan;
  await recordEvent(tx, { ...plan, severity: 'warning' }, 'plan.approval_required', {
    ...{ plan_id, session_id, description, reason },
    ...{ policy_id: policy_id ?? null, guard: guard ?? null },
    expires_at: plan.approval_expires_at.toISOString(),
    ...(reminders > 0 && { reminder: reminders }),
  });
}

/** Asks again for the approval of a locked plan that is proposed, if that is due. @returns the plan as it is then */
export async function remindIfDue(tx: Tx, plan: PlanRow, now: Date): Promise<PlanRow> {
  const { approval, remind_at } = plan;
  if (!approval || remind_at === null || remind_at > now) return plan;
  const nextMs = nextReminderMs(approval);
  const next = nextMs === null ? null : new Date(now.getTime() + nextMs);
  const reminded = { ...plan, reminders: plan.reminders + 1, remind_at: next };
  const values = [plan.tenant_id, plan.plan_id, reminded.reminders, next];
  await tx.query('UPDATE plans SET reminders = $3, remind_at = $4 WHERE tenant_id = $1 AND plan_id = $2', values);
  await recordApprovalRequired(tx, reminded, approval);
  return reminded;
}
