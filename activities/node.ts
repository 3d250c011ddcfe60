import { Context } from '@temporalio/activity';
import type { DispatchEnd, Dispatcher } from '../mesh/dispatcher.js';
import type { DispatchRef } from '../messages/dispatches.js';

/** What a mesh node does for workflows, on its own queue. */
export interface NodeActivities {
  runDispatch(ref: DispatchRef): Promise<DispatchEnd>;
}

/** What a node does at once, on its control queue. */
export interface ControlActivities {
  cancelDispatch(ref: DispatchRef): Promise<void>;
}

/** Carries out dispatches with the given dispatcher, heartbeating while the agent works. */
export function createNodeActivities(dispatcher: Dispatcher): NodeActivities {
  return {
    runDispatch: (ref) => {
      const context = Context.current();
      return dispatcher.run(ref, { heartbeat: () => context.heartbeat(), signal: context.cancellationSignal });
    },
  };
}

/** Brings CANCELED to the agent that holds a dispatch here, connected or hosted. */
export function createControlActivities(dispatchers: Dispatcher[]): ControlActivities {
  return {
    cancelDispatch: async (ref) => {
      await Promise.all(dispatchers.map((dispatcher) => dispatcher.cancel(ref, 'The message was canceled.')));
    },
  };
}
