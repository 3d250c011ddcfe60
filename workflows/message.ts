import { TimeoutType } from '@temporalio/common';
import {
  ActivityFailure,
  CancellationScope,
  condition,
  continueAsNew,
  isCancellation,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { Step } from '../messages/supervise/step.js';
import type { MessageInput } from './definitions.js';
import { controlOf, dispatchOn, record } from './stubs.js';
import { show } from './visibility.js';
import { WakeUps } from './wake-ups.js';

type StepOf<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>;

/** The end of a message: its final state and, if it failed, the error. */
type End = Pick<StepOf<'done'>, 'state' | 'error'>;

/** State shared by the loop and the signal handler. */
class Progress extends WakeUps {
  /** The cancellation was sent to the agent. */
  cancelSent = false;
  /** Consecutive dispatches that sent nothing. */
  misses = 0;
}

const PAUSE_MIN_MS = 250;
const PAUSE_MAX_MS = 5_000;

/** The pause before the message is routed again; it grows while agents accept nothing. */
function pauseMs(misses: number): number {
  return Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(10, misses - 1));
}

/** The error code of a dispatch without a report from its node: the deadline passed, or the node died or never took the task. */
function lossOf(error: unknown): 'DEADLINE_EXCEEDED' | 'AGENT_DISCONNECTED' {
  const cause = error instanceof ActivityFailure ? error.cause : undefined;
  const outOfTime = cause instanceof TimeoutFailure && cause.timeoutType === TimeoutType.START_TO_CLOSE;
  return outOfTime ? 'DEADLINE_EXCEEDED' : 'AGENT_DISCONNECTED';
}

function showEnd({ state, error }: End, agentType: string | null): void {
  const why = error ? `: \`${error.code}\`. ${error.message}` : '.';
  show(state, agentType, `The message is ${state}${why}`, error?.code);
}

/** @returns the end of the message if it ended with the dispatch, else null; `missed` if the dispatch sent nothing and will send nothing */
async function runStep(input: MessageInput, step: StepOf<'dispatch'>): Promise<End | null | 'missed'> {
  const { dispatch_id, deployment_mode, instance_id } = step;
  const ref = { tenant_id: input.tenant_id, message_id: input.message_id, dispatch_id };
  try {
    const { runDispatch } = dispatchOn(step.mesh_id, step.deadline_ms, `to ${instance_id}, attempt ${step.attempt}`);
    const end = await runDispatch({ ...ref, deployment_mode, instance_id });
    if (end.kind === 'closed') return end.final === undefined ? null : { state: end.final, error: end.error };
    await record.release(ref, end.reason);
  } catch (error) {
    if (isCancellation(error)) throw error;
    await record.failAsLost(ref, lossOf(error));
  }
  return 'missed';
}

/** Sends the cancellation to the agent, once. */
async function deliverCancel(input: MessageInput, step: StepOf<'deliver_cancel'>, progress: Progress): Promise<void> {
  if (progress.cancelSent) return;
  progress.cancelSent = true;
  try {
    await controlOf(step.mesh_id).cancelDispatch({ ...input, dispatch_id: step.dispatch_id });
  } catch (error) {
    // The node is dead, and so are its agents' sockets; a live node finds the canceled dispatch by its reconciliation.
    if (!(error instanceof ActivityFailure)) throw error;
  }
}

/** Runs a dispatch. A wake-up meanwhile may mean that the message was canceled; the agent then gets the cancellation at once. */
async function superviseDispatch(input: MessageInput, step: StepOf<'dispatch'>, progress: Progress) {
  let over = false;
  const waiting = new CancellationScope();
  const running = waiting
    .run(() => runStep(input, step))
    .finally(() => {
      over = true;
    });
  // Rejections reach the caller at the await below.
  running.catch(() => undefined);
  for (;;) {
    await condition(() => over || progress.woken);
    if (over) return running;
    progress.woken = false;
    const next = await record.nextStep(input);
    if (next?.kind === 'deliver_cancel') await deliverCancel(input, next, progress);
    // For days, perhaps: the node keeps the dispatch, and the workflow adopts it again after the decision.
    if (next?.kind === 'wait_input' && next.dispatch_id !== undefined) return leave(waiting, running);
  }
}

/** Ends the wait for a dispatch, which goes on. @returns its end if that came first, else null */
async function leave<T>(waiting: CancellationScope, running: Promise<T>): Promise<T | null> {
  waiting.cancel();
  try {
    return await running;
  } catch (error) {
    if (isCancellation(error) && !CancellationScope.current().consideredCancelled) return null;
    throw error;
  }
}

/** @returns the end of the message if it ended with the dispatch, else null */
async function dispatch(input: MessageInput, step: StepOf<'dispatch'>, progress: Progress): Promise<End | null> {
  const { agent_type, instance_id, attempt } = step;
  show('working', agent_type, `Waits for agent \`${instance_id}\` (${agent_type}), attempt ${attempt}.`);
  const result = await superviseDispatch(input, step, progress);
  if (result === 'missed') {
    progress.misses += 1;
    await condition(() => progress.woken, pauseMs(progress.misses));
    return null;
  }
  progress.misses = 0;
  if (result) showEnd(result, agent_type);
  return result;
}

/** Takes the next step. @returns the end of the message once it has ended, else null */
async function follow(input: MessageInput, step: Step | null, progress: Progress): Promise<End | null> {
  if (!step) return { state: 'unknown' };
  switch (step.kind) {
    case 'done':
      showEnd(step, step.agent_type);
      return { state: step.state, error: step.error };
    case 'deliver_cancel':
      show('canceled', step.agent_type, 'The message is canceled; the cancellation is being sent to its agent.');
      await deliverCancel(input, step, progress);
      return { state: 'canceled' };
    case 'dispatch':
      return dispatch(input, step, progress);
    case 'wait_agent': {
      const ofType = step.agent_type ? ` of type ${step.agent_type}` : '';
      show('submitted', step.agent_type, `Waits for a free agent${ofType} since ${step.since}.`);
      await condition(() => progress.woken, step.retry_ms);
      return null;
    }
    case 'wait_policy':
      show('submitted', step.agent_type, 'Waits for the evaluators of policies.');
      await condition(() => progress.woken, step.retry_ms);
      return null;
    case 'wait_input': {
      const { awaited = `Waits for a human since ${step.since}, until ${step.expires_at}.` } = step;
      show('input-required', step.agent_type, awaited);
      await condition(() => progress.woken, step.wait_ms ?? step.expires_ms);
      return null;
    }
    default:
      return step satisfies never;
  }
}

async function supervise(input: MessageInput, progress: Progress): Promise<End> {
  for (;;) {
    progress.woken = false;
    const end = await follow(input, await record.nextStep(input), progress);
    if (end !== null && !progress.woken) return end;
    if (end === null && workflowInfo().continueAsNewSuggested) await continueAsNew<typeof message>(input);
  }
}

/**
 * Supervises one message until it ends: it takes the steps that Postgres decides (`nextStep`) and holds no state of its own, so it can be
 * recreated. An operator's cancel in the Temporal UI cancels the message.
 */
export async function message(input: MessageInput): Promise<End> {
  const progress = new Progress();
  try {
    return await supervise(input, progress);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return CancellationScope.nonCancellable(async () => {
      await record.cancelByOperator(input);
      return supervise(input, progress);
    });
  }
}
