/** A dispatch as the fast path passes it to the mesh, and its frame as text. */
import { dispatchOf, frame, PARTS } from '../harness/frames.mjs';

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/** The payload of a `dispatch` frame. @param {string} id a UUID */
export function payloadOf(id, tenantId) {
  const ids = { session_id: `ses_${id}`, tenant_id: tenantId, message_id: `msg_${id}` };
  const dispatch_id = `dsp_${id}`;
  const session_context = { ...ids, propagation_headers: { traceparent: TRACEPARENT } };
  return { ...dispatchOf(id, PARTS), dispatch_id, attempt: 1, idempotency_key: dispatch_id, session_context };
}

/** A `dispatch` frame of the same length as the mesh's. */
export function dispatchText(id) {
  return frame('dispatch', payloadOf(id, `ten_${id}`), { id });
}
