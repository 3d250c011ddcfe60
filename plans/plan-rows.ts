import type { Part } from '../contracts/a2a/parts.js';
import type { Caller } from '../contracts/api/auth.js';
import type { PlanState, StepState } from '../contracts/api/plans.js';
import type { Scope } from '../contracts/primitives.js';
import type { Tx } from '../db/pool.js';
import type { SessionRef } from '../sessions/session-deps.js';
import type { StepFacts } from './steps/next-moves.js';

/** Identifies a plan across tenants. */
export interface PlanRef {
  tenant_id: string;
  plan_id: string;
}

/** A row of `plans`. */
export interface PlanRow extends PlanRef, SessionRef {
  description: string;
  state: PlanState;
  max_parallel: number;
  auto_approve: boolean;
  credential_id: string;
  created_by: string;
  /** The claim of the creator's token. */
  agent_type: string;
  scopes: Scope[];
  trace_id: string;
  /** Whether the trace is sampled. */
  sampled: boolean;
  created_at: Date;
  started_at: Date | null;
  ended_at: Date | null;
  error_code: string | null;
  error_message: string | null;
  failed_step: number | null;
}

/** A row of `plan_steps`. */
export interface StepRow extends PlanRef {
  place: number;
  step_id: string;
  description: string;
  agent_type: string | null;
  instance_id: string | null;
  skill_id: string | null;
  parts: Part[];
  depends_on: number[];
  requires_approval: boolean;
  timeout_seconds: number | null;
  max_attempts: number;
  state: StepState;
  attempts: number;
  message_id: string | null;
  started_at: Date | null;
  ended_at: Date | null;
  retry_at: Date | null;
  /** How often in a row the platform had no room for its next attempt. */
  postponed: number;
  due_at: Date | null;
  time_left_ms: number | null;
  error_code: string | null;
  error_message: string | null;
}

/** A step with what its message says about it: all but the content. */
export interface ObservedStep extends Omit<StepRow, 'parts' | 'description' | 'postponed'> {
  message_state: string | null;
  message_error_code: string | null;
  message_error: string | null;
  /** The agent that has the message, or had it last, and since when. */
  worker_type: string | null;
  worker_id: string | null;
  worker_since: Date | null;
}

/** Locks a plan until the transaction ends; null when the tenant has none of that id. No other lock may be taken after this one. */
export async function lockPlan(tx: Tx, { tenant_id, plan_id }: PlanRef): Promise<PlanRow | null> {
  const [row] = await tx.query<PlanRow>(
    'SELECT * FROM plans WHERE tenant_id = $1 AND plan_id = $2 FOR NO KEY UPDATE',
    [tenant_id, plan_id],
    'lock_plan',
  );
  return row ?? null;
}

/** The steps of a plan in their order, with what their messages say. */
export function observedSteps(tx: Tx, { tenant_id, plan_id }: PlanRef): Promise<ObservedStep[]> {
  return tx.query<ObservedStep>(
    `SELECT s.tenant_id, s.plan_id, s.place, s.step_id, s.agent_type, s.instance_id, s.skill_id, s.depends_on, s.requires_approval,
            s.timeout_seconds, s.max_attempts, s.state, s.attempts, s.message_id, s.started_at, s.ended_at, s.retry_at, s.due_at,
            s.time_left_ms, s.error_code, s.error_message, m.state AS message_state, m.error_code AS message_error_code,
            m.error_message AS message_error, m.agent_type AS worker_type, m.instance_id AS worker_id,
            coalesce(d.sent_at, m.started_at) AS worker_since
       FROM plan_steps s
       LEFT JOIN messages m ON m.tenant_id = s.tenant_id AND m.message_id = s.message_id
       LEFT JOIN running_messages r ON r.tenant_id = s.tenant_id AND r.message_id = s.message_id
       LEFT JOIN dispatches d ON d.tenant_id = s.tenant_id AND d.dispatch_id = r.current_dispatch_id
      WHERE s.tenant_id = $1 AND s.plan_id = $2 ORDER BY s.place`,
    [tenant_id, plan_id],
    'observe_plan_steps',
  );
}

const errorOf = (code: string | null, message: string | null) =>
  code === null ? null : { code, message: message ?? '' };

/** What decides about a step. */
export function factsOf(row: ObservedStep): StepFacts {
  const { place, state, depends_on, attempts, max_attempts, retry_at, due_at, time_left_ms } = row;
  const message =
    row.message_state === null
      ? null
      : { state: row.message_state, error: errorOf(row.message_error_code, row.message_error) };
  const error = errorOf(row.error_code, row.error_message);
  return { place, state, depends_on, attempts, max_attempts, retry_at, due_at, time_left_ms, error, message };
}

/** Writes changed steps, in one statement. The caller holds the plan's lock. */
export async function writeSteps(
  tx: Tx,
  { tenant_id, plan_id }: PlanRef,
  changed: readonly StepFacts[],
): Promise<void> {
  if (changed.length === 0) return;
  const rows = changed.map(({ place, state, retry_at, due_at, time_left_ms, error }) => ({
    ...{ place, state, retry_at, due_at, time_left_ms },
    error_code: error?.code ?? null,
    error_message: error?.message ?? null,
  }));
  await tx.query(
    `UPDATE plan_steps s SET state = c.state, retry_at = c.retry_at, due_at = c.due_at, time_left_ms = c.time_left_ms,
            error_code = c.error_code, error_message = c.error_message,
            ended_at = CASE WHEN c.state IN ('completed', 'failed', 'skipped') THEN now() END
       FROM jsonb_to_recordset($3) AS c (place integer, state text, retry_at timestamptz, due_at timestamptz, time_left_ms bigint,
              error_code text, error_message text)
      WHERE s.tenant_id = $1 AND s.plan_id = $2 AND s.place = c.place`,
    [tenant_id, plan_id, JSON.stringify(rows)],
    'write_plan_steps',
  );
}

/** Has the plan starter wake the workflow of a plan; in the transaction of the change that it is to see. */
export async function requestWake(tx: Tx, { tenant_id, plan_id }: PlanRef): Promise<void> {
  await tx.query('INSERT INTO plan_wakes (tenant_id, plan_id) VALUES ($1, $2)', [tenant_id, plan_id]);
}

/** Who sends the steps of a plan: its creator, with the claims that the token had. */
export function creatorOf({ tenant_id, created_by, credential_id, agent_type, scopes }: PlanRow): Caller {
  return { tenant_id, sub: created_by, credential_id, agent_type, scopes, iat: 0, exp: 0 };
}
