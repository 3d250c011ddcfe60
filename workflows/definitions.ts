/**
 * Names, inputs and task queues of the workflows. `messages/` starts and signals them by these; nothing here runs in a sandbox.
 */

/** The task queue of all workflows and of the activities that any worker may run. */
export const FLEET_QUEUE = 'fleet';
/** Activities that any mesh node may run: dispatches to hosted agents. */
export const HOSTED_QUEUE = 'mesh';

/** Push notifications on their way to receivers, which may take long. */
export const DELIVERY_QUEUE = 'delivery';

/** The queue of one mesh node: dispatches to agents whose socket it holds. */
export function nodeQueue(meshId: string): string {
  return `mesh:${meshId}`;
}

/** A node's second queue, which never fills with slow agents: cancels. */
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

/** Signal to all three: look at the row again. */
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

/** The Temporal Schedule that keeps watch over the agents, and the workflow it starts. */
export const AGENT_WATCH = { scheduleId: 'fleet-agent-watch', everySeconds: 30 } as const;
