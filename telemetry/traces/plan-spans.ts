import { derivedSpanId, planStepSpanId, spanIdOf, uuidOf } from '../../runtime/ids.js';
import type { PlanFacts, StepFacts } from './facts.js';
import { type Span, spanOf } from './span.js';

const ENDED: Record<string, Span['status']> = { completed: 'ok', failed: 'error' };

/** The spans of a plan and of those of its steps that were begun. The messages of steps have their own. */
export function planSpans(plan: PlanFacts, steps: readonly StepFacts[]): Span[] {
  const { plan_id, state, created_at, started_at, ended_at } = plan;
  const span_id = spanIdOf(uuidOf(plan_id));
  const root = spanOf({
    span_id,
    parent_span_id: plan.parent_span_id,
    name: 'invoke_workflow plan',
    start: created_at,
    end: ended_at,
    status: ENDED[state] ?? 'unset',
    attributes: {
      'gen_ai.operation.name': 'invoke_workflow',
      'gen_ai.workflow.name': 'plan',
      'gen_ai.conversation.id': plan.session_id,
      'error.type': plan.error_code,
      'fleet.plan.id': plan_id,
      'fleet.plan.state': state,
      'fleet.tenant.id': plan.tenant_id,
    },
  });
  const isAsked = !started_at || started_at > created_at;
  const approval = spanOf({
    span_id: derivedSpanId('plan_approval', plan_id),
    parent_span_id: span_id,
    name: 'approval_wait',
    start: created_at,
    end: started_at ?? ended_at,
    status: started_at ? 'ok' : 'unset',
    attributes: { 'fleet.request.kind': 'approval', 'fleet.request.source': 'plan' },
  });
  const begun = steps.flatMap((step) =>
    step.started_at
      ? spanOf({
          span_id: planStepSpanId(plan_id, step.place),
          parent_span_id: span_id,
          name: 'plan_step',
          start: step.started_at,
          end: step.ended_at ?? ended_at,
          status: ENDED[step.state] ?? 'unset',
          attributes: {
            'fleet.plan.step.id': step.step_id,
            'fleet.plan.step.state': step.state,
            'fleet.plan.step.attempts': step.attempts,
            'error.type': step.error_code,
          },
        })
      : [],
  );
  return [root, ...(isAsked ? [approval] : []), ...begun];
}
