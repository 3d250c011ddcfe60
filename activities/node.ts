import { Context } from '@temporalio/activity';
import { isTerminal } from '../contracts/api/messages.js';
import type { DispatchEnd, DispatchRef } from '../messages/dispatch/dispatches.js';
import type { StoredError } from '../messages/dispatch/message-end.js';
import type { RoutedDispatch } from '../messages/runner/mark-dispatch.js';
import type { DispatchRunner } from '../messages/runner/runner.js';
import { stepError } from '../messages/supervise/step.js';

/**
 * What a workflow is told about the end of a dispatch; it goes into a history, so it holds no content. `closed`: the record says how;
 * with `final`, the message ended with it in that state, and failed for the reason in `error`. `not_sent`: nothing went out and nothing
 * will, so the workflow releases the dispatch and routes the message again.
 */
export type DispatchReport =
  | { kind: 'closed'; final?: string; error?: StoredError }
  | { kind: 'not_sent'; reason: string };

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

export type NodeActivities = ReturnType<typeof createNodeActivities>;

/** What a mesh node does on its own queue and on the one for hosted agents: runs dispatches, heartbeating while the agent works. */
export function createNodeActivities(runner: Pick<DispatchRunner, 'run'>) {
  return {
    runDispatch: async (routed: RoutedDispatch): Promise<DispatchReport> => {
      // Before the first await: afterwards there is no context (runtime/async-context.ts).
      const context = Context.current();
      const startedAt = performance.now();
      const heartbeat = () => {
        if (performance.now() - startedAt >= QUIET_MS) context.heartbeat();
      };
      return reportOf(await runner.run(routed, { heartbeat, signal: context.cancellationSignal }));
    },
  };
}

export type ControlActivities = ReturnType<typeof createControlActivities>;

/** What a node does at once, on its control queue: sends CANCELED to the agent that has a dispatch of this node. */
export function createControlActivities(runner: Pick<DispatchRunner, 'cancel'>) {
  return { cancelDispatch: (ref: DispatchRef) => runner.cancel(ref, 'The message was canceled.') };
}
