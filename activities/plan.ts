import type { PlanInput } from '../contracts/workflows.js';
import type { AcceptDeps } from '../messages/accept/accept.js';
import { cancelIfRunning } from '../messages/cancel.js';
import { type Advance, advancePlan } from '../plans/advance.js';
import { cancelPlanByOperator } from '../plans/plans.js';
import { type StepAttempt, startStep } from '../plans/steps/start-step.js';

/** The dependencies of the plan activities. */
export interface PlanActivityDeps {
  accept: AcceptDeps;
  /** Called when the message of a step is under way. */
  stepStarted: () => void;
}

export type PlanActivities = ReturnType<typeof createPlanActivities>;

/** Local activities of the plan workflow: short and idempotent. */
export function createPlanActivities({ accept, stepStarted }: PlanActivityDeps) {
  const { core } = accept;
  return {
    advancePlan: (input: PlanInput): Promise<Advance> => advancePlan(core.db, input),
    startStep: async (input: PlanInput, attempt: StepAttempt): Promise<void> => {
      await startStep(accept, input, attempt);
      stepStarted();
    },
    /** Cancels the message of a step that has ended, unless the message has ended too. */
    cancelStepMessage: ({ tenant_id }: PlanInput, message_id: string): Promise<void> =>
      cancelIfRunning(core, { tenant_id, message_id }, 'the step of the plan has ended'),
    cancelPlanByOperator: (input: PlanInput): Promise<void> => cancelPlanByOperator(core.db, input),
  };
}
