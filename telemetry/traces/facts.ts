import type { TraceSpan } from '../../contracts/api/telemetry.js';

/** What the record says of a message, for its spans. */
export interface MessageFacts {
  tenant_id: string;
  message_id: string;
  session_id: string;
  trace_id: string;
  parent_span_id: string | null;
  /** Whether its caller samples the trace. */
  sampled: boolean;
  method: string;
  sender_agent_type: string | null;
  want_agent_type: string | null;
  agent_type: string | null;
  instance_id: string | null;
  state: string;
  error_code: string | null;
  usage: { input_tokens: number; output_tokens: number; model?: string } | null;
  created_at: Date;
  updated_at: Date;
  completed_at: Date | null;
}

/** A dispatch of a message. */
export interface DispatchFacts {
  dispatch_id: string;
  message_id: string;
  instance_id: string;
  agent_type: string;
  deployment_mode: string;
  attempt: number;
  state: string;
  error_code: string | null;
  sent_at: Date | null;
  ended_at: Date | null;
}

/** An event about a message. `dispatch_id`: that it names. */
export interface EventFacts {
  message_id: string;
  event_type: string;
  occurred_at: Date;
  dispatch_id: string | null;
}

/** What a policy or a guard decided about a message or a tool call of it. */
export interface DecisionFacts {
  message_id: string;
  event_id: string;
  event_type: string;
  occurred_at: Date;
  payload: Record<string, unknown>;
}

/** A request to a human. */
export interface RequestFacts {
  request_id: string;
  message_id: string;
  kind: string;
  source: string;
  stage: string;
  tool: string | null;
  policy_name: string | null;
  guard: string | null;
  state: string;
  resolution: string | null;
  requested_at: Date;
  ended_at: Date | null;
}

/** A row of `trace_spans`. */
export interface RecordedFacts {
  message_id: string;
  span_id: string;
  parent_span_id: string;
  name: string;
  kind: TraceSpan['kind'];
  started_at: Date;
  ended_at: Date;
  error_type: string | null;
  attributes: TraceSpan['attributes'];
}

/** A plan. `root_agent`: the agent type of its first step. */
export interface PlanFacts {
  tenant_id: string;
  plan_id: string;
  session_id: string;
  trace_id: string;
  parent_span_id: string | null;
  /** Whether its caller samples the trace. */
  sampled: boolean;
  state: string;
  root_agent: string | null;
  error_code: string | null;
  auto_approve: boolean;
  created_at: Date;
  started_at: Date | null;
  ended_at: Date | null;
}

/** A step of a plan. */
export interface StepFacts {
  plan_id: string;
  place: number;
  step_id: string;
  state: string;
  attempts: number;
  error_code: string | null;
  started_at: Date | null;
  ended_at: Date | null;
}

/** What the course of some messages is derived from: admission, queue, dispatches and waits for humans. */
export interface CourseFacts {
  dispatches: DispatchFacts[];
  /** Of the types `message.received` and `dispatch.sent`. */
  events: EventFacts[];
  requests: RequestFacts[];
}

/** All that the spans of some messages are derived from. */
export interface MessageDetails extends CourseFacts {
  decisions: DecisionFacts[];
  recorded: RecordedFacts[];
}

/** Where a trace needs no more than their number. */
export interface CountedDetails extends CourseFacts {
  counts: { message_id: string; decisions: number; recorded: number }[];
}
