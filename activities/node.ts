import { Context } from '@temporalio/activity';
import { isTerminal } from '../contracts/api/messages.js';
import type { DispatchEnd, DispatchRef } from '../messages/dispatch/dispatches.js';
import type { RoutedDispatch } from '../messages/runner/mark-dispatch.js';
import type { DispatchRunner } from '../messages/runner/runner.js';
import { type StepError, stepError } from '../messages/supervise/step.js';

/**
 * What a workflow is told about the end of a dispatch; it goes into a history, so it holds no content. `closed`: the record says how;
 * with `final`, the message ended with it in that state, and failed for the reason in `error`. `not_sent`: nothing went out and nothing
 * will, so the workflow releases the dispatch and routes the message again.
 */
export type DispatchReport =
  | { kind: 'closed'; final?: string; error?: StepError }
  | { kind: 'not_sent'; reason: string };

/** What a mesh node does for workflows, on its own queue and on the one for hosted agents. */
export interface NodeActivities {
  runDispatch(input: RoutedDispatch): Promise<DispatchReport>;
}

/** What a node does at once, on its control queue. */
export interface ControlActivities {
  cancelDispatch(ref: DispatchRef): Promise<void>;
}

/**
 * The server counts the heartbeat timeout from the start of the activity, so a short dispatch needs no heartbeat. Each heartbeat is a call
 * and a write.
 */
const QUIET_MS = 1_500;

/** The part of an end that workflows need. */
export function reportOf({ state, message, reason = '' }: DispatchEnd): DispatchReport {
  if (state === 'not_sent') return { kind: 'not_sent', reason };
  if (!message || !isTerminal(message.state)) return { kind: 'closed' };
  return { kind: 'closed', final: message.state, ...stepError(message.error_code, message.error_message) };
}

/** Runs dispatches, heartbeating while the agent works. */
export function createNodeActivities(runner: Pick<DispatchRunner, 'run'>): NodeActivities {
  return {
    runDispatch: async (routed) => {
      // Before the first await: afterwards there is no context (runtime/async-context.ts).
      const context = Context.current();
      const startedAt = performance.now();
      const end = await runner.run(routed, {
        heartbeat: () => {
          if (performance.now() - startedAt >= QUIET_MS) context.heartbeat();
        },
        signal: context.cancellationSignal,
      });
      return reportOf(end);
    },
  };
}

/** Sends CANCELED to the agent that has a dispatch of this node. */
export function createControlActivities(runner: Pick<DispatchRunner, 'cancel'>): ControlActivities {
  return { cancelDispatch: (ref) => runner.cancel(ref, 'The message was canceled.') };
}
