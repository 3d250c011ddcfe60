import { derivedSpanId, planStepSpanId, spanIdOf, uuidOf } from '../../runtime/ids.js';
import type { DerivedPart, TracePart } from './derive.js';
import type { PlanFacts, StepFacts } from './facts.js';
import { type Span, spanOf } from './span.js';

const ENDED: Record<string, Span['status']> = { completed: 'ok', failed: 'error' };

const spanIdOfPlan = ({ plan_id }: PlanFacts) => spanIdOf(uuidOf(plan_id));

/** The plan, and its wait for approval. */
function planCourse(plan: PlanFacts): Span[] {
  const { plan_id, state, created_at, started_at, ended_at } = plan;
  const span_id = spanIdOfPlan(plan);
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
  return isAsked ? [root, approval] : [root];
}

function stepSpan(plan: PlanFacts, step: StepFacts, start: Date): Span {
  return spanOf({
    span_id: planStepSpanId(plan.plan_id, step.place),
    parent_span_id: spanIdOfPlan(plan),
    name: 'plan_step',
    start,
    end: step.ended_at ?? plan.ended_at,
    status: ENDED[step.state] ?? 'unset',
    attributes: {
      'fleet.plan.step.id': step.step_id,
      'fleet.plan.step.state': step.state,
      'fleet.plan.step.attempts': step.attempts,
      'error.type': step.error_code,
    },
  });
}

/** A plan with its spans and those of its steps that were begun. The messages of steps have their own. */
export function planSpans(plan: PlanFacts, steps: readonly StepFacts[]): DerivedPart {
  const course = planCourse(plan);
  const begun = steps.flatMap((step) => (step.started_at ? stepSpan(plan, step, step.started_at) : []));
  return { course, spans: [...course, ...begun], count: course.length + begun.length, isTruncated: false };
}

/** As `planSpans`, without the spans of steps. @param begun how many steps were begun */
export function planCounts(plan: PlanFacts, begun: number): TracePart {
  const course = planCourse(plan);
  return { course, count: course.length + begun, isTruncated: false };
}
