import { z } from 'zod';
import { ToolResult } from '../../contracts/api/tools.js';
import { DeregisteredAgent, ForwardedCall, RoutedCall } from '../../tools/tool-link.js';

/** Kinds of messages that are sent again until the other node acknowledges them. */
const ACKNOWLEDGED = ['call', 'forward', 'withdraw', 'outcome'] as const;

/** `from` is the node that the acknowledgement and the result go to. */
const call = { from: z.string(), call_id: z.string() };
const DispatchRef = z.object({ tenant_id: z.string(), message_id: z.string(), dispatch_id: z.string() });

/** A message between nodes. */
const NodeMessage = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('call'), ...call, call: RoutedCall }),
  z.object({ kind: z.literal('forward'), ...call, call: ForwardedCall }),
  z.object({ kind: z.literal('withdraw'), ...call }),
  z.object({ kind: z.literal('outcome'), ...call, sent: z.boolean(), result: ToolResult }),
  z.object({ kind: z.literal('acknowledged'), of: z.enum(ACKNOWLEDGED), call_id: z.string() }),
  z.object({ kind: z.literal('deregistered'), agent: DeregisteredAgent }),
  /** An agent of the node may have room for what waits. */
  z.object({ kind: z.literal('fill'), agent: z.object({ tenant_id: z.string(), instance_id: z.string() }) }),
  /** A dispatch of the node was canceled on the record. */
  z.object({ kind: z.literal('canceled'), dispatch: DispatchRef }),
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
