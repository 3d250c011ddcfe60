import type { Db } from '../db/pool.js';
import type { TemporalLink } from '../messages/supervise/temporal-link.js';
import { FairSemaphore } from '../runtime/fair-semaphore.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import type { SessionRef } from '../sessions/session-deps.js';
import { CHECK_MS } from './advance.js';
import type { PlanRef } from './plan-rows.js';
import { cancelPlanByOperator } from './plans.js';

/** Between two looks for due wake-ups while none is expected; another process may still have written one. */
const IDLE_MS = 1_000;
/** Between two looks while wake-ups are expected: plans run. */
const ALERT_MS = 100;
/** For how long wake-ups are expected after the last call of `expect` or the last one that was found. */
const ALERT_FOR_MS = 10_000;
const BATCH = 500;
/** Between two searches for workflows that may be lost. */
const CHECK_EVERY_MS = 5_000;
/** Concurrent calls of Temporal, and those of one tenant. */
const [CALLS_MAX, CALLS_OF_TENANT_MAX] = [16, 4];

/** A plan that its workflow must look at. */
type PlanToWake = PlanRef & SessionRef;

/** Due wake-ups among which a turn chooses, and those of one tenant that it takes, so that nobody waits for a tenant with hundreds. */
const [CHOICE, OF_TENANT_MAX] = [5_000, 40];

/** Claims due wake-ups for ten seconds. Workers share them; those that are not deleted by then are repeated. */
const CLAIM = `
  WITH due AS MATERIALIZED (
    SELECT wake_id, row_number() OVER (PARTITION BY tenant_id ORDER BY due_at) AS turn
      FROM (SELECT wake_id, tenant_id, due_at FROM plan_wakes WHERE due_at <= now() ORDER BY due_at LIMIT ${CHOICE}) AS oldest),
  picked AS MATERIALIZED (
    SELECT wake_id FROM plan_wakes JOIN due USING (wake_id) WHERE due_at <= now() AND turn <= ${OF_TENANT_MAX}
     ORDER BY turn LIMIT ${BATCH} FOR UPDATE OF plan_wakes SKIP LOCKED)
  UPDATE plan_wakes w SET due_at = now() + interval '10 s' FROM picked, plans p
   WHERE w.wake_id = picked.wake_id AND p.tenant_id = w.tenant_id AND p.plan_id = w.plan_id
  RETURNING w.wake_id, w.tenant_id, w.plan_id, p.session_id`;

/** Claims plans whose workflow is to be looked up, for a minute. */
const CLAIM_CHECKS = `
  UPDATE plans p SET check_at = now() + interval '1 minute'
    FROM (SELECT tenant_id, plan_id FROM plans WHERE check_at <= now() ORDER BY check_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) AS due
   WHERE p.tenant_id = due.tenant_id AND p.plan_id = due.plan_id RETURNING p.tenant_id, p.plan_id, p.session_id`;

const CHECKED = `UPDATE plans SET check_at = now() + interval '${CHECK_MS} ms' WHERE tenant_id = $1 AND plan_id = $2 AND check_at IS NOT NULL`;

export type PlanWorkflows = Pick<TemporalLink, 'wakePlan' | 'fateOfPlan'>;

/**
 * Starts and wakes the workflows of plans: after each change that they must see, and where one was lost. It works for any process that writes
 * a wake-up; what a crash or an outage of Temporal left is repeated.
 */
export class PlanStarter {
  #expectedUntil = 0;
  #checkedAt = Number.NEGATIVE_INFINITY;
  readonly #loop: Loop;
  readonly #turns = new FairSemaphore({
    limit: CALLS_MAX,
    perKey: CALLS_OF_TENANT_MAX,
    waitingMax: 2 * BATCH,
    refusal: () => new Error('too many plans of one tenant wait to be woken'),
  });

  constructor(
    private readonly db: Db,
    private readonly log: Logger,
    private readonly workflows: PlanWorkflows,
  ) {
    this.#loop = new Loop({ name: 'plan starter', intervalMs: IDLE_MS, immediate: true, log, work: () => this.turn() });
  }

  start(): void {
    this.#loop.start();
  }

  /** Ends after the batch under way. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** A wake-up is expected soon: this process has written one, or has started a step. */
  expect(): void {
    this.#expectedUntil = performance.now() + ALERT_FOR_MS;
    this.#loop.wake();
  }

  /** Wakes what is due. @returns milliseconds until the next look */
  async turn(): Promise<number> {
    const claimed = await this.db.system((tx) => tx.query<PlanToWake & { wake_id: number }>(CLAIM));
    const checks = await this.#claimChecks();
    const ids = new Map<string, number[]>();
    const plans = new Map<string, PlanToWake>();
    for (const { wake_id, ...plan } of claimed) {
      ids.set(plan.plan_id, [...(ids.get(plan.plan_id) ?? []), wake_id]);
      plans.set(plan.plan_id, plan);
    }
    const results = await Promise.allSettled([
      ...[...plans.values()].map((plan) => this.#wake(plan, ids.get(plan.plan_id) ?? [])),
      ...checks.map((plan) => this.#turns.run(plan.tenant_id, () => this.#check(plan))),
    ]);
    if (claimed.length > 0) this.#expectedUntil = performance.now() + ALERT_FOR_MS;
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    if (claimed.length >= OF_TENANT_MAX) return 0; // more may be due
    return performance.now() < this.#expectedUntil ? ALERT_MS : IDLE_MS;
  }

  async #claimChecks(): Promise<PlanToWake[]> {
    if (performance.now() - this.#checkedAt < CHECK_EVERY_MS) return [];
    const claimed = await this.db.system((tx) => tx.query<PlanToWake>(CLAIM_CHECKS));
    this.#checkedAt = performance.now();
    return claimed;
  }

  async #wake({ tenant_id, plan_id, session_id }: PlanToWake, wakeIds: number[]): Promise<void> {
    await this.#turns.run(tenant_id, () => this.workflows.wakePlan({ tenant_id, plan_id, session_id }));
    await this.db.system((tx) => tx.query('DELETE FROM plan_wakes WHERE wake_id = ANY ($1)', [wakeIds]));
  }

  /** Recreates a workflow that is lost. One that an operator ended cancels its plan. */
  async #check({ tenant_id, plan_id, session_id }: PlanToWake): Promise<void> {
    const ref = { tenant_id, plan_id };
    const fate = await this.workflows.fateOfPlan(ref);
    if (fate === 'ended_by_operator') {
      this.log.warn({ plan_id }, 'the workflow of a plan was ended in Temporal; the plan is canceled');
      await cancelPlanByOperator(this.db, ref);
    }
    if (fate !== 'running') await this.workflows.wakePlan({ tenant_id, plan_id, session_id });
    await this.db.system((tx) => tx.query(CHECKED, [tenant_id, plan_id]));
  }
}
