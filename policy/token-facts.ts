import type { Caller } from '../contracts/api/auth.js';
import type { PolicyRequest } from './policy-request.js';

/** What policies see of a caller's token. */
export function tokenFacts({ sub, credential_id, scopes, agent_type }: Caller): NonNullable<PolicyRequest['token']> {
  return { sub, credential_id, scopes, agent_type };
}
