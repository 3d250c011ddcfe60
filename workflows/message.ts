import { CancellationScope, condition, continueAsNew, isCancellation, workflowInfo } from '@temporalio/workflow';
import type { MessageInput } from '../contracts/workflows.js';
import type { DoneStep } from '../messages/supervise/step.js';
import { record } from './stubs.js';
import { show } from './visibility.js';
import { OperatorSignals } from './wake-ups.js';

/** The end of a message: its final state and, if it failed, the error. */
type End = Pick<DoneStep, 'state' | 'error'>;

/** Carries out the decisions and the cancel that operators have signalled. */
async function obey(input: MessageInput, signals: OperatorSignals): Promise<void> {
  for (let next = signals.decisions.shift(); next !== undefined; next = signals.decisions.shift())
    await record.resolveByOperator(input, next);
  if (signals.isCanceled) await record.cancelByOperator(input);
  signals.isCanceled = false;
}

async function watch(input: MessageInput, signals: OperatorSignals): Promise<End> {
  for (;;) {
    signals.woken = false;
    await obey(input, signals);
    const step = await record.nextStep(input);
    if (!step) return { state: 'unknown' };
    const { state, agent_type } = step;
    if (step.kind === 'done') {
      const { error } = step;
      const why = error ? `: \`${error.code}\`.` : '.';
      show(state, agent_type, `The message is ${state}${why}`, error?.code);
      if (!signals.woken) return { state, error };
      continue;
    }
    show(state, agent_type, step.details);
    await condition(() => signals.woken, step.wait_ms);
    if (workflowInfo().continueAsNewSuggested && !signals.woken) await continueAsNew<typeof message>(input);
  }
}

/**
 * Follows a message that waits for a human or lasts, until it ends. When it is woken, and when a reminder or an expiry is due, it takes the
 * message's next step on the record and shows operators where the message stands. It holds no state, so it can be recreated. An operator's
 * cancel in the Temporal UI cancels the message, and so does the signal `cancel`; the signal `resolve` decides about a request, where that is
 * allowed.
 */
export async function message(input: MessageInput): Promise<End> {
  const signals = new OperatorSignals();
  try {
    return await watch(input, signals);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return CancellationScope.nonCancellable(async () => {
      await record.cancelByOperator(input);
      return watch(input, signals);
    });
  }
}
