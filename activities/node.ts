import { Context } from '@temporalio/activity';
import type { DispatchEnd, Dispatcher, RoutedDispatch } from '../mesh/dispatcher.js';
import type { DispatchRef } from '../messages/dispatch/dispatch-ref.js';

/** A dispatch and the kind of agent it goes to. */
export interface RunDispatchInput extends RoutedDispatch {
  deployment_mode: 'hosted' | 'connected';
}

/** What a mesh node does for workflows, on its own queue and on the one for hosted agents. */
export interface NodeActivities {
  runDispatch(input: RunDispatchInput): Promise<DispatchEnd>;
}

/** The two ways to reach an agent. */
export type Dispatchers = Record<RunDispatchInput['deployment_mode'], Dispatcher>;

/** What a node does at once, on its control queue. */
export interface ControlActivities {
  cancelDispatch(ref: DispatchRef): Promise<void>;
}

/** The server counts a dispatch's time without a sign of life from its start; a short one needs no sign, and each is a call and a write. */
const QUIET_MS = 1_500;

/** Carries out dispatches, heartbeating while the agent works. */
export function createNodeActivities(dispatchers: Dispatchers): NodeActivities {
  return {
    runDispatch: ({ deployment_mode, ...ref }) => {
      // Before the first await: afterwards there is no context (runtime/async-context.ts).
      const context = Context.current();
      const startedAt = performance.now();
      return dispatchers[deployment_mode].run(ref, {
        heartbeat: () => {
          if (performance.now() - startedAt >= QUIET_MS) context.heartbeat();
        },
        signal: context.cancellationSignal,
      });
    },
  };
}

/** Brings CANCELED to the agent that holds a dispatch here, connected or hosted. */
export function createControlActivities(dispatchers: Dispatchers): ControlActivities {
  return {
    cancelDispatch: async (ref) => {
      await Promise.all(
        Object.values(dispatchers).map((dispatcher) => dispatcher.cancel(ref, 'The message was canceled.')),
      );
    },
  };
}
