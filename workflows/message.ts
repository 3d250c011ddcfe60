import { TimeoutType } from '@temporalio/common';
import {
  ActivityFailure,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  setHandler,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { Step, StepError } from '../messages/supervise/step.js';
import { type MessageInput, WAKE_SIGNAL } from './definitions.js';
import { controlOf, dispatchOn, record } from './stubs.js';
import { show } from './visibility.js';

type DispatchStep = Extract<Step, { kind: 'dispatch' }>;

const wake = defineSignal(WAKE_SIGNAL);

/** State shared by the loop and the signal handler. */
class Wakeups {
  /** The row may have changed. */
  woken = false;
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

/** The end of a message: its final state and, if it failed, the error. */
interface End {
  state: string;
  error?: StepError;
}

/** The result of a dispatch. `missed`: it sent nothing and will send nothing. `final`: the message ended with it. */
interface Carried {
  missed: boolean;
  final: End | null;
}

function endOf(state: string, error: StepError | undefined): End {
  return error ? { state, error } : { state };
}

function showEnd({ state, error }: End, agentType: string | null): void {
  const why = error ? `: \`${error.code}\`. ${error.message}` : '.';
  show(state, agentType, `The message is ${state}${why}`, error?.code);
}

async function runStep(input: MessageInput, step: DispatchStep): Promise<Carried> {
  const { dispatch_id, deployment_mode } = step;
  const ref = { tenant_id: input.tenant_id, message_id: input.message_id, dispatch_id };
  try {
    const summary = `to ${step.instance_id}, attempt ${step.attempt}`;
    const routed = { ...ref, deployment_mode, instance_id: step.instance_id };
    const end = await dispatchOn(step.mesh_id, step.deadline_ms, summary).runDispatch(routed);
    if (end.kind === 'closed') {
      return { missed: false, final: end.final === undefined ? null : endOf(end.final, end.error) };
    }
    await record.release(ref, end.reason);
    return { missed: true, final: null };
  } catch (error) {
    if (isCancellation(error)) throw error;
    await record.failAsLost(ref, lossOf(error));
    return { missed: true, final: null };
  }
}

type CancelStep = Extract<Step, { kind: 'deliver_cancel' }>;

/** Sends the cancellation to the agent, once. */
async function deliverCancel(input: MessageInput, step: CancelStep, wakeups: Wakeups): Promise<void> {
  if (wakeups.cancelSent) return;
  wakeups.cancelSent = true;
  try {
    await controlOf(step.mesh_id).cancelDispatch({ ...input, dispatch_id: step.dispatch_id });
  } catch (error) {
    // The node is dead, and so are its agents' sockets; a live node finds the canceled dispatch by its reconciliation.
    if (!(error instanceof ActivityFailure)) throw error;
  }
}

/** Runs a dispatch. A wake-up meanwhile may mean that the message was canceled; the agent then gets the cancellation at once. */
async function superviseDispatch(input: MessageInput, step: DispatchStep, wakeups: Wakeups): Promise<Carried> {
  let over = false;
  const running = runStep(input, step).finally(() => {
    over = true;
  });
  // Rejections reach the caller at the await below.
  running.catch(() => undefined);
  for (;;) {
    await condition(() => over || wakeups.woken);
    if (over) return running;
    wakeups.woken = false;
    const next = await record.nextStep(input);
    if (next?.kind === 'deliver_cancel') await deliverCancel(input, next, wakeups);
  }
}

/** @returns the end of the message if it ended with the dispatch, else null */
async function dispatch(input: MessageInput, step: DispatchStep, wakeups: Wakeups): Promise<End | null> {
  show(
    'working',
    step.agent_type,
    `Waits for agent \`${step.instance_id}\` (${step.agent_type}), attempt ${step.attempt}.`,
  );
  const { missed, final } = await superviseDispatch(input, step, wakeups);
  if (final !== null) showEnd(final, step.agent_type);
  wakeups.misses = missed ? wakeups.misses + 1 : 0;
  if (wakeups.misses > 0) await condition(() => wakeups.woken, pauseMs(wakeups.misses));
  return final;
}

/** Takes the next step. @returns the end of the message once it has ended, else null */
async function follow(input: MessageInput, step: Step | null, wakeups: Wakeups): Promise<End | null> {
  if (!step) return { state: 'unknown' };
  switch (step.kind) {
    case 'done': {
      const end = endOf(step.state, step.error);
      showEnd(end, step.agent_type);
      return end;
    }
    case 'deliver_cancel':
      show('canceled', step.agent_type, 'The message is canceled; the cancellation is being sent to its agent.');
      await deliverCancel(input, step, wakeups);
      return { state: 'canceled' };
    case 'dispatch':
      return dispatch(input, step, wakeups);
    case 'wait_agent':
      show(
        'submitted',
        step.agent_type,
        `Waits for a free agent${step.agent_type ? ` of type ${step.agent_type}` : ''} since ${step.since}.`,
      );
      await condition(() => wakeups.woken, step.retry_ms);
      return null;
    case 'wait_input':
      show(
        'input-required',
        step.agent_type,
        `Waits for a human (${step.request_kind}, asked by the ${step.source}) since ${step.since}, until ${step.expires_at}.`,
      );
      await condition(() => wakeups.woken, step.expires_ms);
      return null;
    default:
      return step satisfies never;
  }
}

async function supervise(input: MessageInput, wakeups: Wakeups): Promise<End> {
  for (;;) {
    wakeups.woken = false;
    const end = await follow(input, await record.nextStep(input), wakeups);
    if (end !== null) {
      if (!wakeups.woken) return end;
      continue;
    }
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof message>(input);
  }
}

/**
 * Supervises one message until it ends: it takes the steps that Postgres decides (`nextStep`) and holds no state of its own, so it can be
 * recreated. An operator's cancel in the Temporal UI cancels the message.
 */
export async function message(input: MessageInput): Promise<End> {
  const wakeups = new Wakeups();
  setHandler(wake, () => {
    wakeups.woken = true;
  });
  try {
    return await supervise(input, wakeups);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return CancellationScope.nonCancellable(async () => {
      await record.cancelByOperator(input);
      return supervise(input, wakeups);
    });
  }
}
