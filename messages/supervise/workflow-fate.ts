import type { WorkflowExecutionStatusName } from '@temporalio/client';

/** The state of a workflow, as far as the sweeper needs it. */
export type WorkflowFate = 'running' | 'missing' | 'ended_by_operator' | 'ended';

/** The fate that a status of Temporal means. `COMPLETED` is no work of an operator, nor is a status that Temporal adds later. */
export function fateOf(status: WorkflowExecutionStatusName): WorkflowFate {
  if (status === 'RUNNING' || status === 'CONTINUED_AS_NEW' || status === 'PAUSED') return 'running';
  return status === 'TERMINATED' || status === 'CANCELLED' || status === 'FAILED' || status === 'TIMED_OUT'
    ? 'ended_by_operator'
    : 'ended';
}
