import { hash } from 'node:crypto';
import type { ToolRequest } from './call-context.js';

/**
 * The `idempotency_key` of a call as tools and the record get it. In a session it is bound to the session and the type of the caller, because
 * another instance of the type may repeat the call after a loss; outside of one, to the caller alone. So one key in two sessions makes two
 * calls.
 * @returns undefined for a call without a key
 */
export function boundKeyOf({ caller, payload, parent }: Pick<ToolRequest, 'caller' | 'payload' | 'parent'>) {
  const { idempotency_key } = payload;
  if (!idempotency_key) return undefined;
  const session = parent?.session_id ?? payload.session_id;
  const owner = session ? [caller.tenant_id, caller.agent_type, session] : [caller.key];
  return hash('sha256', JSON.stringify([...owner, idempotency_key]));
}
