import { NO_AGENT } from '../../contracts/primitives.js';
import type { Db, Tx } from '../../db/pool.js';
import { askedBy, type LinkedRequest, type LinkedStep, linkedRequest, senderOf } from '../../messages/input/by-link.js';
import type { FoundToken } from '../../messages/input/callback-tokens.js';
import { PlatformError } from '../../runtime/errors.js';
import type { PlanRef, PlanRow, StepRow } from '../plan-rows.js';
import { askerOfPlan } from './decide-plan.js';
import { agentOf } from './plan-policy.js';
import { readPlanRequest } from './plan-request.js';

const PLAN = 'SELECT * FROM plans WHERE tenant_id = $1 AND plan_id = $2';
const STEPS = 'SELECT * FROM plan_steps WHERE tenant_id = $1 AND plan_id = $2 ORDER BY place';

async function stepsOf(tx: Tx, { tenant_id, plan_id }: PlanRef): Promise<LinkedStep[]> {
  const rows = await tx.query<StepRow>(STEPS, [tenant_id, plan_id]);
  return rows.map((row) => {
    const { step_id, description, parts, requires_approval, timeout_seconds, max_attempts } = row;
    const depends_on = row.depends_on.map((place) => rows[place]?.step_id ?? '');
    return {
      ...{ step_id, description, parts, agent: agentOf(row), depends_on },
      ...{ requires_approval, timeout_seconds, max_attempts },
    };
  });
}

/** What a callback token asks about a plan. @throws PlatformError unauthorized where the plan is gone */
export function describePlan(db: Db, token: FoundToken & PlanRef): Promise<LinkedRequest> {
  const { tenant_id, plan_id } = token;
  return db.tenant(tenant_id, async (tx) => {
    const [plan] = await tx.query<PlanRow>(PLAN, [tenant_id, plan_id]);
    if (!plan) throw new PlatformError('unauthorized', 'The callback_token is not valid.');
    const asked = await readPlanRequest(tx, plan);
    const { description, max_parallel, agent_type } = plan;
    const sent_by = await senderOf(tx, plan, agent_type === NO_AGENT ? null : agent_type);
    return {
      ...(await linkedRequest(tx, asked, token, askerOfPlan(plan))),
      asked_by: askedBy(asked, null),
      subject: { kind: 'plan', plan_id, description, max_parallel, sent_by, steps: await stepsOf(tx, plan) },
    };
  });
}
