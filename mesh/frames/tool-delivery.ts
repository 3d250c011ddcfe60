import type { ToolDelivery } from '../../contracts/api/tools.js';
import type { RoutedCall } from '../../tools/tool-link.js';

/** The payload of the frame that brings a call to its agent. */
export function deliveryOf({
  call_id,
  tool,
  arguments: given,
  session_id,
  deadline_ms,
  idempotency_key,
  caller,
}: RoutedCall): ToolDelivery {
  const session = session_id === undefined ? {} : { session_id };
  return { tool, arguments: given, dispatch_id: call_id, ...session, deadline_ms, idempotency_key, caller };
}
