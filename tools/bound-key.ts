import { hash } from 'node:crypto';
import type { ToolRequest } from './call-context.js';

/**
 * The `idempotency_key` of a call as tools and the record get it: bound to its session and to the type of its caller, of which another instance may
 * repeat the call after a loss; outside of a session to the caller alone. So agents that use one key in two sessions make two calls.
 * @returns undefined for a call without a key
 */
export function boundKeyOf({ caller, payload, parent }: Pick<ToolRequest, 'caller' | 'payload' | 'parent'>) {
  const { idempotency_key } = payload;
  if (!idempotency_key) return undefined;
  const session = parent?.session_id ?? payload.session_id;
  const owner = session ? [caller.tenant_id, caller.agent_type, session] : [caller.key];
  return hash('sha256', JSON.stringify([...owner, idempotency_key]));
}
