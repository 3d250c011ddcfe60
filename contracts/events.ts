/** Payloads of the events that the platform writes (specification section 6). The part of a name before the dot is the category. */
export interface EventPayloads {
  'agent.registered': { agent_type: string; instance_id: string; tenant_id: string; connect_mode: string };
  'agent.deregistered': { agent_type: string; instance_id: string; reason: string };
  'agent.health_changed': { agent_type: string; instance_id: string; status: string; previous_status: string };
  'agent.capacity_changed': {
    agent_type: string;
    instance_id: string;
    current_sessions: number;
    max_concurrent_sessions: number;
  };
  'session.created': { session_id: string; tenant_id: string; created_by: string };
  'session.closed': { session_id: string; reason: string; duration_ms: number };
  'dispatch.sent': { dispatch_id: string; instance_id: string; skill_id: string | null; session_id: string };
  'dispatch.success': { dispatch_id: string; instance_id: string; duration_ms: number };
  'dispatch.failed': { dispatch_id: string; instance_id: string; error: string; duration_ms: number };
  'message.received': { message_id: string; session_id: string; role: string };
  'message.completed': { message_id: string; session_id: string; role: string; duration_ms: number };
  'message.error': { message_id: string; session_id: string; error: string };
  'message.canceled': { message_id: string; session_id: string; reason: string };
  'message.input_required': Record<'message_id' | 'session_id' | 'request_id' | 'kind' | 'source' | 'title', string>;
  'message.resolved': Record<'message_id' | 'session_id' | 'request_id' | 'resolution' | 'resolved_by', string>;
  'tenant.created': { tenant_id: string; name: string };
  'tenant.deleted': { tenant_id: string; name: string };
}
export type EventType = keyof EventPayloads;
