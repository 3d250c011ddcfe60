import { CancellationScope, condition, continueAsNew, isCancellation, workflowInfo } from '@temporalio/workflow';
import type { PlanInput } from '../contracts/workflows.js';
import type { Advance, ShownStep } from '../plans/advance.js';
import { planRecord } from './stubs.js';
import { show } from './visibility.js';
import { WakeUps } from './wake-ups.js';

function lineOf({ step_id, state, attempts, agent, since, error }: ShownStep): string {
  const attempt = attempts > 1 ? `, attempt ${attempts}` : '';
  const from = since === undefined ? '' : ` since ${since}`;
  const worker = agent === null ? '' : `, ${agent}${from}`;
  const failure = error === undefined ? '' : `, \`${error}\``;
  return `- \`${step_id}\`: ${state}${attempt}${worker}${failure}`;
}

function headOf({ state, steps, awaited }: Advance): string {
  if (awaited !== undefined) return awaited;
  const completed = steps.filter((step) => step.state === 'completed').length;
  return `The plan is ${state}; ${completed} of ${steps.length} steps are completed.`;
}

/** Shows the steps in the Temporal UI. A proposed plan is shown as `input-required`, like a message that waits for a human. */
function showPlan(advance: Advance): void {
  const { state, steps } = advance;
  const details = [headOf(advance), '', ...steps.map(lineOf)].join('\n');
  show(state === 'proposed' ? 'input-required' : state, null, details);
}

async function supervise(input: PlanInput, wakeUps: WakeUps): Promise<{ state: string }> {
  for (;;) {
    wakeUps.woken = false;
    const advance = await planRecord.advancePlan(input);
    showPlan(advance);
    const { state, start, cancel, wait_ms } = advance;
    await Promise.all([
      ...start.map(({ place, attempt }) => planRecord.startStep(input, { place, attempt })),
      ...cancel.map((messageId) => planRecord.cancelStepMessage(input, messageId)),
    ]);
    const isOpen = state === 'proposed' || state === 'running';
    if (start.length + cancel.length === 0) {
      if (!isOpen) {
        if (!wakeUps.woken) return { state };
      } else if (wait_ms === null) await condition(() => wakeUps.woken);
      else await condition(() => wakeUps.woken, wait_ms);
    }
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof plan>(input);
  }
}

/**
 * Takes a plan through its steps. Each time it is woken it asks Postgres what comes next (`advancePlan`) and does that; it holds no state of its
 * own, so it can be recreated. An operator's cancel in the Temporal UI cancels the plan.
 */
export async function plan(input: PlanInput): Promise<{ state: string }> {
  const wakeUps = new WakeUps();
  try {
    return await supervise(input, wakeUps);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return CancellationScope.nonCancellable(async () => {
      await planRecord.cancelPlanByOperator(input);
      return supervise(input, wakeUps);
    });
  }
}
