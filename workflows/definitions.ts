/**
 * Names, inputs and task queues of the workflows. Both the workflow sandbox and the processes that start workflows import this file, so it
 * uses no Node.js API.
 */

/** The task queue of all workflows and of the activities that any worker may run. */
export const FLEET_QUEUE = 'fleet';
/** The task queue of dispatches to hosted agents; any mesh node may run them. */
export const HOSTED_QUEUE = 'mesh';
/** The task queue of push notifications, whose receivers may be slow. */
export const DELIVERY_QUEUE = 'delivery';

/** The task queue of one mesh node: dispatches to the agents whose sockets it holds. */
export function nodeQueue(meshId: string): string {
  return `mesh:${meshId}`;
}

/** A node's task queue for cancellations, apart from its dispatches, which slow agents may hold up. */
export function controlQueue(meshId: string): string {
  return `mesh:${meshId}:control`;
}

/** Input of the `message` workflow. */
export interface MessageInput {
  tenant_id: string;
  message_id: string;
  session_id: string;
}

/** Input of the `session` workflow. */
export interface SessionInput {
  tenant_id: string;
  session_id: string;
}

/** Input of the `delivery` workflow: one push-notification config of one message. */
export interface DeliveryInput {
  tenant_id: string;
  message_id: string;
  config_id: string;
  session_id: string;
}

/** The signal to these three workflows: the row has changed. */
export const WAKE_SIGNAL = 'wake';

export function messageWorkflowId(ref: { tenant_id: string; message_id: string }): string {
  return `message:${ref.tenant_id}:${ref.message_id}`;
}

export function deliveryWorkflowId(of: { tenant_id: string; message_id: string; config_id: string }): string {
  return `delivery:${of.tenant_id}:${of.message_id}:${of.config_id}`;
}

export function sessionWorkflowId(ref: { tenant_id: string; session_id: string }): string {
  return `session:${ref.tenant_id}:${ref.session_id}`;
}

/** The Temporal Schedule of the agent watch. */
export const AGENT_WATCH = { scheduleId: 'fleet-agent-watch', everySeconds: 30 } as const;
