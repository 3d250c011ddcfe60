/** Names, inputs and task queues of the workflows, for them and for those who start them. */

/** The task queue of all workflows and of the activities that any worker may run. */
export const FLEET_QUEUE = 'fleet';
/** The task queue of deliveries, whose receivers may be slow. */
export const DELIVERY_QUEUE = 'delivery';
/** The task queue of processes with the knowledge role, which read and embed documents. */
export const KNOWLEDGE_QUEUE = 'knowledge';

/** Input of the `session` workflow. */
export interface SessionInput {
  tenant_id: string;
  session_id: string;
}

/** Input of the `message` workflow. */
export interface MessageInput extends SessionInput {
  message_id: string;
}

/** Input of the `plan` workflow. */
export interface PlanInput extends SessionInput {
  plan_id: string;
}

interface AnyDeliveryInput extends SessionInput {
  delivery_id: string;
  event_type: string;
}

/** A delivery of an alert rule to one channel, of email to one recipient. */
export interface AlertDeliveryInput extends AnyDeliveryInput {
  event_id: string;
  rule_id: string;
  channel_id: string;
}

/** A push notification of one config of one message. Those that follow it go out after it, in the same workflow. */
export interface PushDeliveryInput extends AnyDeliveryInput {
  message_id: string;
  config_id: string;
}

/** Input of the `delivery` workflow. */
export type DeliveryInput = AlertDeliveryInput | PushDeliveryInput;

/** Input of the `ingest` workflow: a job that takes documents into a knowledge base. */
export interface IngestInput {
  tenant_id: string;
  job_id: string;
}

/** The signal to the workflows of sessions, messages and plans: the row has changed. */
export const WAKE_SIGNAL = 'wake';

/** The signal by which an operator cancels a message; its workflow's cancel does the same. */
export const CANCEL_SIGNAL = 'cancel';

/** The signal by which an operator decides about a message that waits for a human: with `{request_id, resolution}`, if `FLEET_TEMPORAL_RESOLVE` is on. */
export const RESOLVE_SIGNAL = 'resolve';

/** The id of a message's workflow. */
export function messageWorkflowId(ref: Omit<MessageInput, 'session_id'>): string {
  return `message:${ref.tenant_id}:${ref.message_id}`;
}

/** The message of a workflow's id; null for the id of another workflow. */
export function messageOfWorkflow(workflowId: string): Omit<MessageInput, 'session_id'> | null {
  const [, tenant_id, message_id] = /^message:([^:]+):(.+)$/.exec(workflowId) ?? [];
  return tenant_id && message_id ? { tenant_id, message_id } : null;
}

/** What the ids of the workflows that send a message's push notifications begin with. */
export function pushWorkflowPrefix(ref: Pick<MessageInput, 'tenant_id' | 'message_id'>): string {
  return `delivery:${ref.tenant_id}:${ref.message_id}:`;
}

/** The same of the deliveries of alert rules about an event. */
export function alertWorkflowPrefix(of: Pick<AlertDeliveryInput, 'tenant_id' | 'event_id'>): string {
  return `delivery:${of.tenant_id}:${of.event_id}:`;
}

/** @param starts how often the delivery has been started: a redelivery, or one that waited for its receiver, is a workflow of its own */
export function deliveryWorkflowId(of: DeliveryInput, starts: number): string {
  const to =
    'config_id' in of
      ? `${pushWorkflowPrefix(of)}${of.config_id}`
      : `${alertWorkflowPrefix(of)}${of.rule_id}:${of.channel_id}`;
  const id = `${to}:${of.delivery_id}`;
  return starts > 1 ? `${id}:${starts}` : id;
}

/** The id of a job's workflow. */
export function ingestWorkflowId({ tenant_id, job_id }: IngestInput): string {
  return `ingest:${tenant_id}:${job_id}`;
}

/** The id of a session's workflow. */
export function sessionWorkflowId(ref: SessionInput): string {
  return `session:${ref.tenant_id}:${ref.session_id}`;
}

/** The id of a plan's workflow. */
export function planWorkflowId(ref: Omit<PlanInput, 'session_id'>): string {
  return `plan:${ref.tenant_id}:${ref.plan_id}`;
}

/** The Temporal Schedule of the agent watch. */
export const AGENT_WATCH = { scheduleId: 'fleet-agent-watch', everySeconds: 30 } as const;

/** A key as Temporal's `defineSearchAttributeKey` makes it. */
const keyword = (name: string) => ({ name, type: 'KEYWORD' }) as const;

/** The search attributes of the workflows. */
export const SEARCH_ATTRIBUTES = {
  tenant: keyword('FleetTenant'),
  session: keyword('FleetSession'),
  agentType: keyword('FleetAgentType'),
  state: keyword('FleetState'),
  error: keyword('FleetError'),
};
