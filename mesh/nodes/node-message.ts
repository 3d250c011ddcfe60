import { z } from 'zod';
import { DeploymentMode } from '../../contracts/api/agents.js';
import { ToolResult } from '../../contracts/api/tools.js';
import type { DispatchEnd, OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { DeregisteredAgent, ForwardedCall, RoutedCall } from '../../tools/tool-link.js';

/** Kinds of messages that are sent again until the other node acknowledges them. */
const ACKNOWLEDGED = ['call', 'forward', 'withdraw', 'outcome'] as const;

/** `from` is the node that the acknowledgement and the result go to. */
const call = { from: z.string(), call_id: z.string() };
const DispatchRef = z.object({ tenant_id: z.string(), message_id: z.string(), dispatch_id: z.string() });

/** A dispatch as another process read it from the record: its content has been checked before it was written there. */
const ForwardedDispatch = DispatchRef.extend({
  session_id: z.string(),
  instance_id: z.string(),
  deployment_mode: DeploymentMode,
  epoch: z.number(),
  mesh_id: z.string(),
  sent_at: z.coerce.date(),
  deadline_at: z.coerce.date(),
  payload: z.looseObject({}),
}).loose() as unknown as z.ZodType<OpenDispatch>;

/** The end of a dispatch as a node has written it to the record. */
const ForwardedEnd = z.object({
  state: z.enum(['completed', 'failed', 'input_required', 'lost', 'not_sent', 'closed', 'unrecorded']),
  message: z
    .looseObject({ state: z.string(), updated_at: z.coerce.date(), completed_at: z.coerce.date().nullable() })
    .nullable(),
}) as unknown as z.ZodType<DispatchEnd>;

/** A message between nodes. */
const NodeMessage = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('call'), ...call, call: RoutedCall }),
  z.object({ kind: z.literal('forward'), ...call, call: ForwardedCall }),
  z.object({ kind: z.literal('withdraw'), ...call }),
  z.object({ kind: z.literal('outcome'), ...call, sent: z.boolean(), result: ToolResult }),
  z.object({ kind: z.literal('acknowledged'), of: z.enum(ACKNOWLEDGED), call_id: z.string() }),
  z.object({ kind: z.literal('deregistered'), agent: DeregisteredAgent }),
  z.object({
    kind: z.literal('dispatch'),
    from: z.string(),
    ref: DispatchRef,
    /** When the accept transaction began, by the database's clock, in milliseconds since 1970. */
    accepted_at_ms: z.number(),
    /** Null: too large to be carried, the node reads it from the record. */
    dispatch: ForwardedDispatch.nullable(),
  }),
  z.object({ kind: z.literal('dispatch_taken'), dispatch_id: z.string() }),
  z.object({ kind: z.literal('dispatch_refused'), dispatch_id: z.string() }),
  z.object({ kind: z.literal('dispatch_ended'), dispatch_id: z.string(), end: ForwardedEnd }),
]);
export type NodeMessage = z.infer<typeof NodeMessage>;
export type AcknowledgedMessage = Extract<NodeMessage, { kind: (typeof ACKNOWLEDGED)[number] }>;

/** Parses a message; undefined when it is not valid. */
export function parseNodeMessage(text: string): NodeMessage | undefined {
  try {
    return NodeMessage.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
