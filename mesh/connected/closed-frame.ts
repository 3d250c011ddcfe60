import type { OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { uuidOf } from '../../runtime/ids.js';
import { errorFrame } from '../connection/frames.js';

/** Tells an agent that its dispatch is closed on the record: CANCELED, GUARD_DENIED for `denied`, or DISPATCH_ALREADY_TERMINAL with the state. */
export function closedFrame({ dispatch_id, payload }: OpenDispatch, state: string, reason: string): string {
  const { traceparent } = payload.session_context.propagation_headers;
  const frameId = uuidOf(dispatch_id);
  if (state === 'denied') return errorFrame('GUARD_DENIED', reason, frameId, traceparent);
  return state === 'canceled'
    ? errorFrame('CANCELED', reason || 'The message was canceled.', frameId, traceparent)
    : errorFrame('DISPATCH_ALREADY_TERMINAL', `The dispatch has ended: ${state}.`, frameId, traceparent);
}
